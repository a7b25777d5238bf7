"""The component class of `crf_ner` and `crf_chunker`: spans without overlap, by tags of tokens."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property, partial
from itertools import filterfalse
from typing import Any, ClassVar

import numpy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from torch import Tensor

from spacy_psa.errors import InputError, check_amounts, check_choice, check_rates, naming
from spacy_psa.pipeline.chain.chain_analyses import ChainBatch, Scored, what_is_known
from spacy_psa.pipeline.chain.decoders import SpanDecoder, make_decoder
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.labeler import Allowed, ChainLabeler, Known, Tags
from spacy_psa.pipeline.chain.refined_chain import RefinedChain, without_spans
from spacy_psa.pipeline.chain.span_posteriors import (
    Posterior,
    SpanPosteriors,
    sentence_posteriors,
)
from spacy_psa.pipeline.chain.span_tags import MISSING, Spans, SpanScheme, TagFormat
from spacy_psa.pipeline.chain.suggestions import (
    Suggested,
    check_suggested,
    read_suggestions,
)
from spacy_psa.pipeline.evidence import (
    NOTHING,
    OUTSIDE,
    Evidence,
    check_consistent,
    check_groups,
    overlap,
)
from spacy_psa.pipeline.inference import Decode, Infer, SpanPrediction, infer, scored_spans
from spacy_psa.pipeline.settings import Setting
from spacy_psa.pipeline.written import is_noted, note, write_group
from spacy_psa.ragged import to_device
from spacy_psa.scoring.span_group import score_group
from spacy_psa.sentences import Bounds, sentence_bounds
from spacy_psa.structs.chain import LinearChain


class SpanStore(ABC):
    """The place on docs where a component reads and writes spans."""

    spans_key: str | None = None
    """The span group that the spans are written to; None for another place."""
    incorrect_spans_key: str | None = None
    """The key of `reference.spans` with spans that are known to be wrong; None for none."""
    uncertainty: ClassVar[str | None] = None
    """The custom attribute of the doc for the entropy, with `confidence = true`."""

    @abstractmethod
    def gold(self, name: str, example: Example) -> tuple[Spans, Allowed]:
        """Read the gold spans of an example.

        Returns:
            The spans (start, end, label) over the tokens of the predicted doc, and a bool array
            (n,) that is true for tokens without annotation.
        """

    @abstractmethod
    def reference(self, name: str, doc: Doc) -> list[Span] | None:
        """Read the gold spans of a reference doc; None if it has no such annotation."""

    @abstractmethod
    def read(self, doc: Doc) -> tuple[list[Span], Allowed | None]:
        """Read the spans on a doc, with those that the component itself has predicted.

        Returns:
            The spans, and a bool array (n,) that is true for tokens that are known to be in no
            span; None for none.
        """

    @abstractmethod
    def write(self, doc: Doc, spans: list[Span], outside: Allowed | None) -> None:
        """Write spans, in order, to a doc in place of those on it; `outside` is as in `read`."""


class SpanLabeler(ChainLabeler):
    """Labels spans without overlap, such as entities and chunks, by tags of their tokens.

    `labels` are the labels of spans, `tags` the tags of tokens that encode them. The component
    predicts the most probable legal analysis of each sentence under a linear-chain CRF (Wei2020
    section 3). A doc without sentence boundaries is one sentence.

    Spans that are on a doc before the component runs are evidence: the component keeps them and
    predicts the best analysis that agrees with them. It also keeps spans whose labels the model
    does not know, and predicts nothing over them. Its own earlier predictions are not evidence.

    A predicted span begins and ends with a word, and may have white space inside. With
    `scheme = "BIO"` it may end with white space. Spans on a doc stay as they are.

    Args:
        scheme: "BIOES" tells the end of a span and single tokens apart (Wei2020 section 5.1);
            "BIO" does not.
        decode: "viterbi" predicts the most probable analysis. "mbr" predicts the spans with the
            highest expected F1 over the document (minimum Bayes risk; `doc.user_data["document"]`
            joins sentences to a document), and writes them also to `doc.spans[name]` with their
            scores. "threshold" writes all spans whose probability is at least `threshold` to
            `doc.spans[name]` with their scores, also overlapping ones, and nothing else.
        threshold: a probability from 0 to 1, for `decode = "threshold"`.
        recall_cost: the number that training adds to the log potential of O at each token of a
            gold span (softmax-margin, Gimpel, Smith 2010; for the recall of entities, Mohit et al.
            2012); 0 for nothing. The model learns to find a span against these odds, so it misses
            fewer and finds more wrong ones. Probabilities lean towards spans as well.
        suggested_spans: for keys of `doc.spans` with suggestions, such as those of a `span_ruler`
            before this component, the weight that is added to the log odds of a suggested span;
            or a weight for each label, with "*" for the others, as `learn_weights` sets them. None
            for no suggestions. Training does not use suggestions.

    Raises:
        InputError: if a setting has a value that is not possible.
    """

    decode = Setting(lambda name, value: check_choice(name, value, Decode))
    threshold = Setting(lambda name, value: check_rates(**{name: value}))
    suggested_spans = Setting(check_suggested)
    _derived: ClassVar[tuple[str, ...]] = (*ChainLabeler._derived, "_decoder")

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        store: SpanStore,
        scheme: TagFormat = "BIOES",
        decode: Decode = "viterbi",
        threshold: float = 0.5,
        recall_cost: float = 0.0,
        suggested_spans: Suggested | None = None,
        **settings: Any,
    ):
        super().__init__(vocab, model, name, **settings)
        self.store = store
        self.suggested_spans = suggested_spans
        self.decode = decode
        self.threshold = threshold
        with naming(name):
            check_choice("scheme", scheme, TagFormat)
            check_amounts(recall_cost=recall_cost)
            keys = self.required_spans_key, self.forbidden_spans_key
            check_groups(*keys, written=store.spans_key)
        self._recall_cost = recall_cost
        self._tag_format = scheme
        self._crossing = 0
        if self._decoder.overlapping:
            register()
            # The other decoders write the same spans to both groups, the evidence included.
            if name == store.spans_key:
                raise InputError(
                    f"{name}: decode is {decode!r}, which would replace the chunks in "
                    f'doc.spans["{name}"]: the component needs another name than its spans_key'
                )

    @cached_property
    def scheme(self) -> SpanScheme:
        """The translation between spans and tags."""
        return SpanScheme(self.labels, self._tag_format)

    @cached_property
    def _decoder(self) -> SpanDecoder:
        """The object that chooses spans, by the settings `decode`, `threshold` and `confidence`."""
        entropy = self.confidence and self.store.uncertainty is not None
        return make_decoder(self.decode, self.threshold, scores=self.confidence, entropy=entropy)

    def _find_labels(self, examples: Iterable[Example]) -> list[str]:
        labels: set[str] = set()
        for example in examples:
            reference = example.reference
            wrong = reference.spans.get(self.store.incorrect_spans_key or "") or ()
            spans = [*(self.store.reference(self.name, reference) or ()), *wrong]
            labels |= {span.label_ for span in spans if span.label}
        return sorted(labels)

    # Inference

    def predict(self, docs: Iterable[Doc]) -> list[SpanPrediction]:
        """Predict the spans of each doc, by the settings `decode` and `confidence`.

        Raises:
            InputError: if no legal analysis of a sentence agrees with the evidence.
        """
        return self._decoder.predict(list(docs), partial(infer, self), self.scheme)

    def set_annotations(self, docs: Iterable[Doc], scores: list[SpanPrediction]) -> None:
        """Write the predictions of `predict`, and the evidence, to the docs."""
        decoder = self._decoder
        for doc, predicted in zip(docs, scores, strict=True):
            spans = [Span(doc, *span) for span in predicted.spans]
            values = predicted.scores or [0.0] * len(spans)
            held: list[Span] = []
            if not decoder.overlapping:
                held, outside = self._held(doc)
                if held:
                    taken = {i for span in held for i in range(span.start, span.end)}
                    free = [(s, value) for s, value in zip(spans, values) if s.start not in taken]
                    spans, values = [span for span, _ in free], [value for _, value in free]
            note(self.name, doc, spans, values if decoder.scores else None)
            if held:
                pairs = [*zip(spans, values), *((span, 1.0) for span in held)]  # it is certain
                pairs.sort(key=lambda pair: pair[0].start)
                spans, values = [span for span, _ in pairs], [value for _, value in pairs]
            if not decoder.overlapping:
                self.store.write(doc, spans, outside)
            if decoder.scores:
                if not Span.has_extension("confidence"):  # the setting was changed
                    register()
                write_group(doc, self.name, spans, values)
            if decoder.entropy and self.store.uncertainty:
                doc._.set(self.store.uncertainty, predicted.entropy)

    def prediction_sets(self, docs: Iterable[Doc]) -> list[list[tuple[Span, float]]]:
        """Find sets of spans that hold the true ones with the probability of `coverage`.

        In a new document, a true span that is drawn at random is in its set with at least the
        promised probability, if the document is like those that `calibrate --coverage` had. The
        docs stay as they are. The evidence on them counts.

        Returns:
            For each doc, the spans with their probabilities, in order. They may overlap.

        Raises:
            InputError: if the component has no coverage.
        """
        docs = list(docs)
        likely = self._likely(docs, self.calibrated.least, partial(infer, self))
        return scored_spans(docs, likely)

    def _likely(self, docs: list[Doc], least: float, infer: Infer) -> list[SpanPrediction]:
        """Find the spans whose probability is at least `least`."""
        decoder = make_decoder("threshold", least, scores=True, entropy=False)
        return decoder.predict(docs, infer, self.scheme)

    def _named(self, tags: list[int], start: int) -> list[Any]:
        return [(start + s, start + e, label) for s, e, label in self.scheme.decode(tags)]

    def _joined(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        return [Span(doc, *span) for part in parts for span in part]

    def _posteriors(self, chain: LinearChain) -> list[Posterior]:
        return sentence_posteriors(chain, self.scheme)

    def _above(self, batch: ChainBatch, row: int, least: float) -> list[Scored]:
        chain = batch.dist.select(torch.tensor([row]))
        refined = chain if isinstance(chain, RefinedChain) else None
        scheme = refined.scheme if refined else self.scheme
        rows, values = SpanPosteriors(chain, scheme).above(least)
        spans = [(start, end, scheme.labels[label]) for _, start, end, label in rows.tolist()]
        spans = refined.spans(0, spans) if refined else spans
        return [(*span, value) for span, value in zip(spans, values.tolist())]

    # Evidence

    def _held(self, doc: Doc) -> tuple[list[Span], Allowed | None]:
        """Read the spans on a doc that this component has not predicted itself; see `SpanStore`."""
        if self.overwrite:
            return [], None
        spans, outside = self.store.read(doc)
        return list(filterfalse(partial(is_noted, self.name), spans)), outside

    def _on_doc(self, doc: Doc, bounds: Bounds) -> Evidence:
        held, outside = self._held(doc)
        groups = self.suggested_spans
        suggested = read_suggestions(doc, groups, self.labels) if groups else {}
        if not held and outside is None:
            return Evidence(suggested=suggested) if suggested else NOTHING
        # Tokens of spans with labels that the model does not know get the tag O.
        unknown = [span for span in held if span.label_ not in self.labels]
        if unknown:
            every = Evidence([(span.start, span.end, span.label_) for span in held])
            remedy = "remove one, or set overwrite = true"
            check_consistent(self.name, doc, every, [], overlap, remedy)
        free = {i for span in unknown for i in range(span.start, span.end)}
        if outside is not None:
            free.update(numpy.flatnonzero(outside).tolist())
        spans = [(s.start, s.end, s.label_) for s in held if s.label_ in self.labels]
        return Evidence(spans, [], {i: {OUTSIDE} for i in free}, suggested)

    def _check_evidence(self, doc: Doc, evidence: Evidence, bounds: Bounds, remedy: str) -> None:
        held = {(span.start, span.end, span.label_) for span in self._held(doc)[0]}
        check_consistent(self.name, doc, evidence, bounds, overlap, remedy, may_cross=held)
        for start, end, label in evidence.required:
            space = doc[start].is_space or doc[end - 1].is_space
            if space and (start, end, label) not in held:
                raise InputError(
                    f"{self.name}: {doc[start:end].text!r} is required, but begins or ends with "
                    f"white space, so no analysis agrees: {remedy}"
                )

    def _translated(self, doc: Doc, evidence: Evidence, bounds: Bounds) -> list[Known]:
        """Translate evidence into masks of tags and weights of spans, for each sentence.

        Spans that begin or end with white space are left out, unless they are on the doc. In BIO,
        whose tags do not tell the end, a span may still end so.
        """
        space = doc.to_array("IS_SPACE").astype(bool)
        if evidence is NOTHING and not space.any():
            return [Known()] * len(bounds)
        scheme = self.scheme
        inside = numpy.array([tag[0] in "OI" for tag in scheme.tags])
        known = []
        for start, end in bounds:
            allowed, weights = what_is_known(evidence.within(start, end), end - start, scheme)
            own = space[start:end]
            if own.any():
                if allowed is None:
                    allowed = numpy.ones((end - start, len(scheme.tags)), dtype=bool)
                left = allowed[own] & inside
                allowed[own] = numpy.where(left.any(1, keepdims=True), left, allowed[own])
            known.append(Known(allowed, weights))
        return known

    # Training

    def _gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        spans, missing = self.store.gold(self.name, example)
        self._check_labels([label for *_, label in spans])
        gold, inside = [], 0
        for start, end in bounds:
            own = [(s - start, e - start, y) for s, e, y in spans if start <= s and e <= end]
            inside += len(own)
            gold.append(self.scheme.encode(end - start, own))
        if inside < len(spans):
            across = [s for s in spans if not any(a <= s[0] and s[1] <= b for a, b in bounds)]
            missing = missing.copy()
            for start, end, _ in across:
                missing[start:end] = True
            self._warn_of_crossing(example, across)
        for (start, end), tags in zip(bounds, gold):
            tags[missing[start:end]] = MISSING
        return gold

    def _warn_of_crossing(self, example: Example, spans: Spans) -> None:
        """Count gold spans over the bounds of a sentence, and warn of the first."""
        if not self._crossing:
            start, end, label = spans[0]
            text = example.predicted[start:end].text
            warnings.warn(
                f"{self.name}: {text!r} ({label}) goes over the bounds of a sentence; the tokens "
                "of such spans count as not annotated. `spacy-psa debug data` counts them",
                stacklevel=2,
            )
        self._crossing += len(spans)

    def _check_labels(self, labels: Iterable[str]) -> None:
        unknown = set(labels).difference(self.scheme.labels)
        if unknown:
            raise InputError(
                f"{self.name}: the training data has the label {min(unknown)!r}, which is not "
                f"among the labels {', '.join(self.labels)}: initialize with all labels"
            )

    def _with_costs(self, chain: LinearChain, gold: Tensor) -> LinearChain:
        """Add `recall_cost` to the log potential of O, tag 0, at the tokens of gold spans."""
        if not self._recall_cost:
            return chain
        costs = gold.new_zeros((*gold.shape, self._outputs), dtype=chain.dtype)
        costs[..., 0] = self._recall_cost * (gold > 0)
        return chain.tilted(costs)

    def _gold_allowed(self, gold: Tensor) -> Tensor:
        allowed = super()._gold_allowed(gold)
        if self.scheme.tag_format == "BIO":
            # The tags of BIOES tell themselves that a gold span ends; after a span in BIO, a token
            # without annotation must not continue it.
            goes_on = torch.zeros(self._outputs, self._outputs, dtype=torch.bool)
            begins, insides = self.scheme.columns("B"), self.scheme.columns("I")
            goes_on[begins, insides] = goes_on[insides, insides] = True
            before = torch.nn.functional.pad(gold[:, :-1], (1, 0)).clamp(min=0)
            allowed &= ~(to_device(goes_on, gold.device)[before] & (gold == MISSING)[..., None])
        return allowed

    def _log_prob_of_gold(
        self, chain: LinearChain, gold: Tensor, examples: list[Example]
    ) -> Tensor:
        """Compute the log probability of the annotation, without analyses that have a wrong span.

        InputError if every analysis of a sentence that agrees with its gold spans has a wrong span.
        """
        key = self.store.incorrect_spans_key
        wrong = [spans for eg in examples for spans in self._wrong_spans(eg)] if key else []
        rows = [row for row, spans in enumerate(wrong) if spans]
        if not rows:
            return super()._log_prob_of_gold(chain, gold, examples)
        known = chain.constrain(self._gold_allowed(gold))
        some = known.select(torch.tensor(rows))
        left = without_spans(some, self.scheme, [wrong[row] for row in rows]).log_partition
        if (left == -torch.inf).any():
            raise InputError(
                f"{self.name}: in a sentence of the batch, every analysis that agrees with the "
                f'gold entities has a span that spans["{key}"] lists as wrong:'
                " check whether an entity crosses the bounds of a sentence"
            )
        at = torch.tensor(rows, device=left.device)
        return known.log_partition.index_copy(0, at, left) - chain.log_partition

    def _wrong_spans(self, example: Example) -> list[Spans]:
        """Read the spans that are known to be wrong, of each sentence that has tokens.

        InputError if a wrong span is also a gold span, or if its label is not known.
        """
        key = self.store.incorrect_spans_key or ""
        bounds = [bound for bound in sentence_bounds(example.predicted) if bound[0] < bound[1]]
        wrong: list[Spans] = [[] for _ in bounds]
        group = example.reference.spans.get(key) or []
        if not len(group):
            return wrong
        gold = set(self.store.gold(self.name, example)[0])
        for span in example.get_aligned_spans_y2x(group, allow_overlap=True):
            self._check_labels([span.label_])
            if (span.start, span.end, span.label_) in gold:
                raise InputError(
                    f"{self.name}: {span.text!r} ({span.label_}) is an entity of the reference "
                    f"{example.reference.text!r} and also a wrong span in its "
                    f'spans["{key}"]: remove one of the two'
                )
            for (start, end), spans in zip(bounds, wrong):
                if start <= span.start and span.end <= end:
                    spans.append((span.start - start, span.end - start, span.label_))
        return wrong

    # Evaluation

    def score(self, examples: Iterable[Example], **settings: Any) -> dict[str, Any]:
        """Score predicted docs by the component's scorer.

        With `decode = "threshold"`, the scores also have `spans_<name>_p`, `spans_<name>_r`,
        `spans_<name>_f` and `spans_<name>_per_type` of the spans in `doc.spans[name]`, which
        `spacy find-threshold` can use.
        """
        examples = list(examples)
        if self.store.spans_key:
            settings["component_key"] = self.store.spans_key
        figures = dict(super().score(examples, **settings))
        if self._decoder.overlapping:
            figures |= score_group(
                examples, self.name, lambda doc: self.store.reference(self.name, doc)
            )
        return figures


def same_tokens(example: Example) -> bool:
    """Whether the predicted doc and the reference doc have the same tokens."""
    predicted, reference = example.predicted, example.reference
    return len(predicted) == len(reference) and numpy.array_equal(
        predicted.to_array(["ORTH"]), reference.to_array(["ORTH"])
    )
