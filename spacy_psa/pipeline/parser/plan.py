"""The sentences that a parser has to parse, and what is known of them."""

from collections.abc import Iterable, Sequence

from spacy.tokens import Doc

from spacy_psa.pipeline.parser.charts import span_count
from spacy_psa.pipeline.parser.constituents import Sentence, word_sentences
from spacy_psa.pipeline.parser.doc_evidence import read_evidence
from spacy_psa.pipeline.parser.evidence import Evidence
from spacy_psa.pipeline.parser.gold import too_long
from spacy_psa.pipeline.parser.predictions import is_own_tag, predicted_tags
from spacy_psa.pipeline.parser.seen_docs import SeenQuotes, seen_docs
from spacy_psa.sentences import SplitDocs


class Plan:
    """The sentences of some docs, one after the other.

    Args:
        docs: the docs.
        max_length: the largest number of tokens of a sentence that is parsed.
        key: the span group with constituents that are evidence; None for no evidence.
        known: the evidence of each sentence, instead of that on the docs.
        quotes: the quotation marks that the encoder sees.
        tags_key: the span group of the parser if the tags on the docs are evidence; None if not.

    Attributes:
        split: the docs with the bounds of their sentences.
        seen: the same, as the encoder sees them.
        sentences: the sentences.
        owners: the doc of each sentence.
        evidence: what is known of the tree of each sentence.
        tagged: for each sentence the tokens whose tags are known; they keep them.
        sizes: the number of spans of each sentence; 0 if it has no words or is too long.
        too_long: the numbers of the sentences that are too long.

    Examples:
        >>> import spacy
        >>> Plan([spacy.blank("en")("Ada met Bob")], max_length=100).sizes
        [6]
    """

    def __init__(
        self,
        docs: Sequence[Doc],
        max_length: int,
        key: str | None = None,
        known: list[Evidence] | None = None,
        quotes: SeenQuotes = "as_they_are",
        tags_key: str | None = None,
    ) -> None:
        self.split = SplitDocs(docs)
        self.seen = self.split
        if quotes != "as_they_are":
            self.seen = SplitDocs(seen_docs(docs, quotes))
        self.sentences: list[Sentence] = []
        self.owners: list[Doc] = []
        self.evidence: list[Evidence] = []
        self.tagged: list[set[int]] = []
        for doc, bounds in zip(self.split.docs, self.split.bounds):
            found = word_sentences(doc, bounds)
            self.sentences += found
            self.owners += [doc] * len(found)
            tagged = set() if tags_key is None else _known_tags(doc, tags_key)
            self.tagged += [tagged] * len(found)
            if known is None:
                none = [Evidence([], []) for _ in found]
                self.evidence += none if key is None else read_evidence(doc, key, found)
        if known is not None:
            self.evidence = known
        words = [i for i, sentence in enumerate(self.sentences) if len(sentence.words)]
        self.too_long = [i for i in words if too_long(self.sentences[i], max_length)]
        self.sizes = [span_count(sentence) for sentence in self.sentences]
        for i in self.too_long:
            self.sizes[i] = 0

    def choose(self, sentences: Iterable[int]) -> None:
        """Leave out all sentences but those with the given numbers."""
        chosen = set(sentences)
        self.sizes = [size * (i in chosen) for i, size in enumerate(self.sizes)]
        self.too_long = [i for i in self.too_long if i in chosen]


def _known_tags(doc: Doc, key: str) -> set[int]:
    if not (len(doc) and doc.has_annotation("TAG")):
        return set()
    own = predicted_tags(doc, key)
    return {token.i for token in doc if token.tag_ and not is_own_tag(token, own)}
