"""Questions to the distribution of a parser over the trees of a doc."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc
from thinc.types import Floats2d

from spacy_psa.errors import InputError, check_sizes, naming
from spacy_psa.pipeline.asked_spans import Asked
from spacy_psa.pipeline.parser.charts import label_shares
from spacy_psa.pipeline.parser.constituents import Sentence, bracketed
from spacy_psa.pipeline.parser.evidence import (
    TreeDecoding,
    TreeEvidence,
    constrained,
    read_evidence,
    tree_gain,
)
from spacy_psa.sentences import SplitDocs
from spacy_psa.structs.tree import SpanTree

if TYPE_CHECKING:
    from nltk import Tree as NltkTree


class TreeQueries:
    """Answers questions about the trees of a doc, exactly and given the evidence on it.

    A component gives the distributions (`_plan`, `_distributions`) and the meaning of their trees
    (`_constituents`).

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> parser = nlp.add_pipe(
        ...     "constituency_parser", config={"model": {"tok2vec": {"encode": {"layers": 1}}}}
        ... )
        >>> for label in ("S", "NP"):
        ...     _ = parser.add_label(label)
        >>> optimizer = nlp.initialize()
        >>> doc = nlp.make_doc("Ada met Bob")
        >>> (tree,) = parser.decode(doc, require=[(0, 2, "NP"), (0, 3, "S")]).best
        >>> [child.label() for child in tree][0]
        'NP'
    """

    name: str
    max_length: int
    required_spans_key: str | None
    forbidden_spans_key: str | None
    labels: Any
    _plan: Any
    _constituents: Any

    def _distributions(
        self, split: SplitDocs, found: list[Sentence], sizes: list[int]
    ) -> Iterator[tuple[list[int], SpanTree, list[Floats2d]]]:
        raise NotImplementedError

    def decode(
        self, doc: Doc, *, require: Iterable[Asked] = (), forbid: Iterable[Asked] = (), k: int = 1
    ) -> TreeDecoding:
        """Find the best trees of a doc that agree with evidence, exactly.

        A constituent is a `Span` of the doc or (start, end, label) over its tokens. In a unary
        chain each label counts.

        Args:
            doc: the doc; it stays as it is.
            require: constituents that the trees must have. One without label may have any.
            forbid: constituents that they must not have. One without label is forbidden with all
                labels.
            k: how many trees of each sentence to find, at least 1.

        Returns:
            The best trees with their log probabilities among those that agree, and the log
            probability of the evidence.

        Raises:
            InputError: if the evidence contradicts itself, if no tree agrees with it, if it is on a
                sentence that is too long to parse, and for a label that the parser does not know.
        """
        with naming(self.name):
            check_sizes(k=k)
        split = SplitDocs([doc])
        found, sizes = self._plan(split)
        evidence = read_evidence(self.name, doc, found, self.labels, require, forbid)
        for known, size, sentence in zip(evidence, sizes, found):
            if any(known) and not size:
                raise InputError(
                    f"{self.name}: the sentence at token {sentence.start} has more than "
                    f"max_length = {self.max_length} tokens and is not parsed: leave out its "
                    "evidence, or raise max_length"
                )
        best: list[list[tuple[float, NltkTree]]] = [[] for _ in found]
        constituents: list[list[Any]] = [[] for _ in found]
        log_evidence = 0.0
        for batch, dist, _ in self._distributions(split, found, sizes):
            given = constrained(dist, [evidence[i] for i in batch], self.labels)
            log_evidence += tree_gain(self.name, doc, dist, given)
            ranked = given.kbest(k)
            for rank in range(k):
                # A sentence with fewer trees has its last one again, which is not used.
                trees = [own[min(rank, len(own) - 1)] for own in ranked]
                shares = label_shares(given, [tree for _, tree in trees])
                for i, own, (log_prob, tree), share in zip(batch, ranked, trees, shares):
                    if rank < len(own):
                        nodes = self._constituents(tree, found[i], share)
                        words = [node[:3] for node in nodes]
                        best[i].append((log_prob, bracketed(doc, found[i].words, words)))
                        constituents[i].append([tuple(node) for node in nodes])
        return TreeDecoding(best, constituents, log_evidence)

    def kbest(self, doc: Doc, k: int) -> "list[list[tuple[float, NltkTree]]]":
        """Find the k best trees of each sentence of a doc.

        Args:
            doc: the doc.
            k: how many trees to find, at least 1.

        Returns:
            For each sentence, pairs of a log probability and an nltk tree, best first. There are
            fewer than k if fewer are possible, and none for a sentence without words or of more
            than `max_length` tokens.

        Raises:
            InputError: if k is below 1.
            ValueError: if the component has no weights.
        """
        return self.decode(doc, k=k).trees

    def _grouped(self, split: SplitDocs, found: list[Sentence]) -> list[TreeEvidence]:
        """Read the evidence in the span groups of the docs, for each sentence."""
        rest = iter(found)
        known = []
        for doc, bounds in zip(split.docs, split.bounds):
            own = [next(rest) for _ in bounds]
            keys = self.required_spans_key, self.forbidden_spans_key
            groups = (doc.spans.get(key or "") or () for key in keys)
            known += read_evidence(self.name, doc, own, self.labels, *groups)
        return known
