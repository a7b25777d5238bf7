"""The docs that the encoder of a parser sees: with quotation marks of a treebank, or from words."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.bracketing import spelling_data, unescape
from spacy_psa.corpora.quotes import treebank_quotes
from spacy_psa.errors import InputError
from spacy_psa.sentences import EMBEDDED

SeenQuotes = Literal["as_they_are", "treebank"]
MARKS = frozenset('"“”„‘')


def seen_docs(docs: Iterable[Doc], quotes: SeenQuotes) -> list[Doc]:
    """Make the docs that the encoder sees, with its quotation marks; other docs stay the same.

    Args:
        quotes: "as_they_are", or "treebank" to write `` and '' for those of text.
    """
    docs = list(docs)
    if quotes == "as_they_are":
        return docs
    return [_rewritten(doc) if any(t.text in MARKS for t in doc) else doc for doc in docs]


def _rewritten(doc: Doc) -> Doc:
    words = [token.text for token in doc]
    spaces = None if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc]
    seen = treebank_quotes(words, spaces)
    copy = Doc(doc.vocab, words=seen, spaces=spaces)
    attributes: Any = [*EMBEDDED, "SENT_START"]
    array: Any = doc.to_array(attributes)
    for i, (word, other) in enumerate(zip(words, seen)):
        if word != other:
            array[i, EMBEDDED.index("NORM")] = copy[i].norm
    return copy.from_array(attributes, array)


def doc_of_words(name: str, vocab: Vocab, words: Sequence[str | tuple[str, str]]) -> Doc:
    """Make a doc of one sentence from words, or pairs of a word and its tag.

    Args:
        words: the words. They may be written as in a treebank: -LRB- is (, 1\\/2 is 1/2.
    """
    if isinstance(words, str):
        raise InputError(
            f"{name}: parse needs a list of words: use {words.split()!r}, or "
            "nlp(text)._.parse_trees for text"
        )
    if not isinstance(words, Iterable):
        raise InputError(f"{name}: parse needs a list of words, not {words!r}")
    pairs = [(word, "") if isinstance(word, str) else word for word in words]
    for pair in pairs:
        if not (isinstance(pair, (tuple, list)) and list(map(type, pair)) == [str, str]):
            raise InputError(f"{name}: {pair!r} is not a word, or a pair of a word and its tag")
        if not pair[0]:
            raise InputError(f"{name}: a word is empty; leave it out")
    doc = Doc(
        vocab,
        words=[unescape(word) for word, _ in pairs],
        tags=[tag for _, tag in pairs],
        sent_starts=[i == 0 for i in range(len(pairs))],
        user_data=spelling_data(word for word, _ in pairs),
    )
    if not doc.text.strip():
        raise InputError(f"{name}: there are no words to parse")
    return doc
