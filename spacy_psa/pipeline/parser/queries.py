"""Questions to the distribution of a parser over the trees of a doc."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Span
from thinc.types import Floats2d

from spacy_psa.errors import InputError, check_sizes, naming
from spacy_psa.pipeline.asked_spans import Asked
from spacy_psa.pipeline.parser.asked_evidence import asked_evidence
from spacy_psa.pipeline.parser.charts import Shares, label_shares
from spacy_psa.pipeline.parser.constituents import (
    Sentence,
    bracketed,
    single_labels,
    word_sentences,
)
from spacy_psa.pipeline.parser.doc_evidence import constraint_spans, evidence_of
from spacy_psa.pipeline.parser.evidence import (
    Evidence,
    TreeDecoding,
    check_kept,
    constrain,
    tree_gain,
)
from spacy_psa.pipeline.parser.plan import Plan
from spacy_psa.pipeline.parser.predictions import Constituent, Parse
from spacy_psa.structs.span_cells import Tree
from spacy_psa.structs.tree import SpanTree

if TYPE_CHECKING:
    from nltk import Tree as NltkTree


class TreeQueries:
    """Answers questions about the trees of a doc, exactly and given the evidence on it.

    A component gives the distributions (`_plan`, `_distributions`) and the meaning of their trees
    (`_constituents`, `_parses`).

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

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The labels of the chart."""

    @abstractmethod
    def _plan(self, docs: Iterable[Doc]) -> Plan: ...

    @abstractmethod
    def _planned(self, docs: list[Doc], known: list[Evidence] | None = None) -> Plan: ...

    @abstractmethod
    def _distributions(
        self, plan: Plan
    ) -> Iterator[tuple[list[int], SpanTree, list[Floats2d]]]: ...

    @abstractmethod
    def _constituents(
        self, tree: Tree, plan: Plan, number: int, shares: Shares | None = None
    ) -> list[Constituent]: ...

    @abstractmethod
    def _parses(self, plan: Plan) -> list[Parse]: ...

    @abstractmethod
    def _warn_of_margin(self, asked: str) -> None: ...

    @abstractmethod
    def set_annotations(self, docs: Iterable[Doc], scores: list[Parse]) -> None:
        """Write predictions to docs."""

    @property
    def decode(self) -> Callable[..., TreeDecoding]:
        """`decode(doc, *, require=(), forbid=(), k=1, sentences=None)`: the best trees, exactly.

        This finds the best trees of a doc that agree with evidence. A constituent is a `Span` of
        the doc or (start, end, label) over its tokens. In a unary chain each label counts.

        The setting `decode` of the component is its attribute `decoding`. A name that is assigned
        to `decode` sets it.

        Args:
            doc: the doc; it stays as it is, and the evidence on it counts.
            require: constituents that the trees must have. One without label may have any.
            forbid: constituents that they must not have. One without label is forbidden with all
                labels.
            k: how many trees of each sentence to find, at least 1.
            sentences: the numbers of the sentences to find trees of; None for all. Evidence on
                others has no effect.

        Returns:
            The best trees with their log probabilities among those that agree, and the log
            probability of the evidence.

        Raises:
            InputError: if the evidence contradicts itself, if no tree agrees with it, if it is on a
                sentence that is too long to parse, and for a label that the parser does not know.
        """
        return self._decode

    @decode.setter
    def decode(self, value: Any) -> None:
        self.decoding = value

    def _decode(
        self,
        doc: Doc,
        *,
        require: Iterable[Asked] = (),
        forbid: Iterable[Asked] = (),
        k: int = 1,
        sentences: Iterable[int] | None = None,
    ) -> TreeDecoding:
        self._check_number(k, "decode")
        plan = self._plan([doc])
        if sentences is not None:
            plan.choose(sentences)
        asked = asked_evidence(self.name, doc, plan.sentences, self.labels, require, forbid)
        evidence = [self._beside_kept(plan, i, one) for i, one in enumerate(asked)]
        for i in plan.too_long:
            if any(evidence[i]):
                raise InputError(
                    f"{self.name}: the sentence at token {plan.sentences[i].start} has more than "
                    f"max_length = {self.max_length} tokens and is not parsed: leave out its "
                    "evidence, or raise max_length"
                )
        best: list[list[tuple[float, NltkTree]]] = [[] for _ in plan.sentences]
        constituents: list[list[Any]] = [[] for _ in plan.sentences]
        log_evidence = 0.0
        for batch, dist, _ in self._distributions(plan):
            given = constrain(dist, [evidence[i] for i in batch], self.labels)
            log_evidence += tree_gain(self.name, doc, dist, given)
            ranked = given.kbest(k)
            for rank in range(k):
                # A sentence with fewer trees has its last one again, which is not used.
                trees = [own[min(rank, len(own) - 1)] for own in ranked]
                shares = label_shares(given, [tree for _, tree in trees])
                for i, own, (log_prob, tree), share in zip(batch, ranked, trees, shares):
                    if rank < len(own):
                        nodes = self._constituents(tree, plan, i, share)
                        best[i].append((log_prob, self._bracketed(plan, i, nodes)))
                        constituents[i].append([tuple(node) for node in nodes])
        return TreeDecoding(best, constituents, log_evidence)

    def kbest(self, doc: Doc, k: int) -> "list[list[tuple[float, NltkTree]]]":
        """Find the k best trees of each sentence of a doc.

        Args:
            doc: the doc; constituents that are evidence are in all of the trees.
            k: how many trees to find, at least 1.

        Returns:
            For each sentence, pairs of a log probability and an nltk tree, best first. There are
            fewer than k if fewer are possible, and none for a sentence without words or of more
            than `max_length` tokens.

        Raises:
            InputError: if k is below 1.
            ValueError: if the component has no weights.
        """
        self._check_number(k, "kbest")
        plan = self._plan([doc])
        best: list[list[tuple[float, NltkTree]]] = [[] for _ in plan.sentences]
        for batch, dist, _ in self._distributions(plan):
            for i, ranked in zip(batch, dist.kbest(k), strict=True):
                for log_prob, tree in ranked:
                    nodes = self._constituents(tree, plan, i)
                    best[i].append((log_prob, self._bracketed(plan, i, nodes)))
        return best

    def _check_number(self, k: int, asked: str) -> None:
        with naming(self.name):
            check_sizes(k=k)
        self._warn_of_margin(asked)

    def _bracketed(self, plan: Plan, number: int, nodes: Sequence[Constituent]) -> "NltkTree":
        words = plan.sentences[number].words
        return bracketed(plan.owners[number], words, [node[:3] for node in nodes])

    def constrain(
        self,
        doc: Doc,
        *,
        required: Iterable[Asked] = (),
        forbidden: Iterable[Asked] = (),
    ) -> Doc:
        """Parse a doc under constraints, and write the best trees that agree with them to it.

        The constraints take the place of the evidence on the doc.

        Args:
            doc: the doc.
            required: constituents that must be in the trees: spans, or (start, end, label) over
                tokens. Without a label, some constituent must be there. Several labels over the
                same tokens are a unary chain, the outermost first.
            forbidden: constituents that must not be in the trees, likewise.

        Returns:
            The doc.

        Raises:
            InputError: if the constraints contradict each other, a label is not known, or a span
                is of another doc or outside of this one.

        Examples:
            >>> import spacy
            >>> from spacy.tokens import Span
            >>> from spacy.training import Example
            >>> nlp = spacy.blank("en")
            >>> parser = nlp.add_pipe(
            ...     "constituency_parser", config={"model": {"tok2vec": {"encode": {"layers": 1}}}}
            ... )
            >>> reference = nlp.make_doc("Ada met Bob")
            >>> reference.spans["constituents"] = [Span(reference, 0, 3, "S")]
            >>> _ = nlp.initialize(lambda: [Example(nlp.make_doc("Ada met Bob"), reference)])
            >>> doc = parser.constrain(nlp.make_doc("Ada met Bob"), required=[(0, 2, "S")])
            >>> "S" in doc[0:2]._.labels
            True
        """
        asked = [constraint_spans(self.name, doc, each) for each in (required, forbidden)]
        single = sorted(single_labels(self.labels))
        for span in (span for spans in asked for span in spans):
            if span.label_ and span.label_ not in single:
                raise InputError(
                    f"{self.name}: the label {span.label_!r} of {span.text!r} is none of "
                    f"{', '.join(single)}; a chain is several constituents, the outermost first"
                )
        sentences, remedy = word_sentences(doc), "remove one of them"
        known = evidence_of(doc, asked[0], sentences, asked[1], remedy)
        plan = self._planned([doc], known)
        self.set_annotations([doc], self._parses(plan))
        return doc

    def _grouped(self, plan: Plan, number: int) -> Evidence:
        """Read the evidence on a sentence in the span groups of its doc."""
        doc, sentence = plan.owners[number], plan.sentences[number]
        keys = self.required_spans_key, self.forbidden_spans_key
        groups = (
            [span for span in doc.spans.get(key or "") or () if _within(span, sentence)]
            for key in keys
        )
        (asked,) = asked_evidence(self.name, doc, [sentence], self.labels, *groups)
        return self._beside_kept(plan, number, asked)

    def _beside_kept(self, plan: Plan, number: int, asked: Evidence) -> Evidence:
        """Leave out what is asked where the chains on a doc stay as they are, after a check."""
        kept = plan.evidence[number].kept(self.labels)
        if not (kept and any(asked)):
            return asked
        doc, words = plan.owners[number], plan.sentences[number].words.tolist()
        return check_kept(self.name, [doc[i].text for i in words], kept, asked)


def _within(span: Span, sentence: Sentence) -> bool:
    """Whether a span has a token in a sentence."""
    return span.start < sentence.end and sentence.start < span.end
