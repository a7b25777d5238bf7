"""The docs that a parser's encoder sees, with the quotation marks of the treebank."""

from collections.abc import Iterable
from typing import Any, Literal

from spacy.tokens import Doc

from spacy_psa.corpora.quotes import treebank_quotes
from spacy_psa.sentences import EMBEDDED

SeenQuotes = Literal["as_they_are", "treebank"]
MARKS = frozenset('"“”„‘')


def seen_docs(docs: Iterable[Doc], quotes: SeenQuotes) -> list[Doc]:
    """Give docs with the quotation marks that the encoder sees; other docs are the same objects.

    Args:
        docs: the docs.
        quotes: "as_they_are", or "treebank" to write `` and '' for those of text.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> (doc,) = seen_docs([Doc(Vocab(), words=["“", "Go", "”"])], "treebank")
        >>> [token.text for token in doc]
        ['``', 'Go', "''"]
    """
    docs = list(docs)
    if quotes == "as_they_are":
        return docs
    return [_rewritten(doc) if any(t.text in MARKS for t in doc) else doc for doc in docs]


def _rewritten(doc: Doc) -> Doc:
    words = [token.text for token in doc]
    spaces = None if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc]
    seen = treebank_quotes(words, spaces)
    found = Doc(doc.vocab, words=seen, spaces=spaces)
    attributes: Any = [*EMBEDDED, "SENT_START"]
    array: Any = doc.to_array(attributes)
    for i, (word, other) in enumerate(zip(words, seen)):
        if word != other:
            array[i, EMBEDDED.index("NORM")] = found[i].norm
    return found.from_array(attributes, array)
