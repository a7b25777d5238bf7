"""The sentences that a parser has to parse, and the evidence on them."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.bracketing import spelling_data, unescape
from spacy_psa.corpora.quotes import treebank_quotes
from spacy_psa.errors import InputError
from spacy_psa.pipeline.evidence import Evidence
from spacy_psa.pipeline.parser.chart import Constraints, span_count
from spacy_psa.pipeline.parser.constituents import Sentence, word_sentences
from spacy_psa.pipeline.parser.gold import too_long
from spacy_psa.sentences import EMBEDDED, SplitDocs

SeenQuotes = Literal["as_they_are", "treebank"]
MARKS = frozenset('"“”„‘')


class Plan(NamedTuple):
    """The sentences of some docs, one after the other."""

    split: SplitDocs
    """The docs with the bounds of their sentences."""
    seen: SplitDocs
    """The same, as the encoder sees them."""
    sentences: list[Sentence]
    owners: list[int]
    """The number of the doc of each sentence."""
    evidence: Sequence[Evidence]
    """The evidence on each doc."""
    known: list[Constraints]
    """The evidence on the tree of each sentence."""
    sizes: list[int]
    """The number of spans of each sentence; 0 if it has no words or is too long."""
    too_long: list[int]
    """The numbers of the sentences that are too long."""

    @classmethod
    def of(
        cls,
        split: SplitDocs,
        evidence: Sequence[Evidence],
        labels: Sequence[str],
        max_length: int,
        quotes: SeenQuotes,
    ) -> "Plan":
        """Plan the parsing of docs.

        Args:
            split: the docs with the bounds of their sentences.
            evidence: the evidence on each doc.
            labels: the labels of the chart.
            max_length: the largest number of tokens of a sentence that is parsed.
            quotes: the quotation marks that the encoder sees.
        """
        seen = split if quotes == "as_they_are" else SplitDocs(seen_docs(split.docs, quotes))
        sentences, owners, known = [], [], []
        for i, (doc, bounds) in enumerate(zip(split.docs, split.bounds)):
            own = word_sentences(doc, bounds)
            sentences += own
            owners += [i] * len(own)
            known += [Constraints.of(evidence[i], each, labels) for each in own]
        long = [i for i, s in enumerate(sentences) if len(s.words) and too_long(s, max_length)]
        sizes = [0 if too_long(s, max_length) else span_count(s) for s in sentences]
        return cls(split, seen, sentences, owners, evidence, known, sizes, long)

    def text(self, number: int) -> str:
        """Return the text of a sentence."""
        start, end, _ = self.sentences[number]
        return self.split.docs[self.owners[number]][start:end].text


def seen_docs(docs: Iterable[Doc], quotes: SeenQuotes) -> list[Doc]:
    """Make the docs that the encoder sees, with its quotation marks; other docs stay the same.

    Args:
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
        name: the name of the parser, for errors.
        vocab: the vocabulary of the doc.
        words: the words. They may be written as in a treebank: -LRB- is (, 1\\/2 is 1/2.

    Raises:
        InputError: if they are not a list of words or pairs, or if there are none.
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
