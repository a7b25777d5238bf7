"""`crf_spans`: nested, labelled spans by a tree CRF with latent nodes (Fu2021)."""

import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.more_labels import add_span_labels
from spacy_psa.architectures.span_scorer import longest_span
from spacy_psa.bridge.layers import differentiate
from spacy_psa.errors import InputError, check_choice, check_rates, check_sizes, naming
from spacy_psa.modules.span_scorer import span_counts
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.component import Reduction, StructuredPipe
from spacy_psa.pipeline.coverage import Calibrated
from spacy_psa.pipeline.default_models import SPANS
from spacy_psa.pipeline.distillation import with_teacher
from spacy_psa.pipeline.evidence import (
    NOTHING,
    OUTSIDE,
    Asked,
    Evidence,
    Labels,
    Node,
    check_consistent,
    check_groups,
    check_other_group,
    cross,
    overlap,
)
from spacy_psa.pipeline.inference import (
    Decode,
    Infer,
    SpanPrediction,
    Temperature,
    infer,
    joined,
    scored_spans,
    tempered,
)
from spacy_psa.pipeline.nested.decoding import NestedBatch, above, best_f1, most_probable
from spacy_psa.pipeline.nested.gold import (
    Gold,
    NestedStore,
    Unfit,
    fit,
    judge,
    log_prob_of_gold,
    read_gold,
)
from spacy_psa.pipeline.nested.places import (
    Known,
    check_lengths,
    holding,
    simple_labels,
    token_count,
    translate,
)
from spacy_psa.pipeline.rehearsal import rehearse
from spacy_psa.pipeline.settings import Setting, component_factory
from spacy_psa.pipeline.written import is_noted, note, preorder, spans_now, write_group
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import Bounds, sentence_bounds
from spacy_psa.structs.cross_entropy import smoothed
from spacy_psa.structs.label_layers import LabelLayers
from spacy_psa.structs.nested_spans import NestedSpans

Unfitting = Literal["refuse", "drop"]
SeveralLabels = Literal["join", "refuse"]
Layers = Literal["one", "label"]
SCORES = 5_000_000  # scores (L for each span) that a batch has at most in prediction


class NestedSpanLabeler(StructuredPipe):
    """Finds nested, labelled spans and writes them to `doc.spans[spans_key]`, as `crf_spans`.

    Two spans of an analysis are nested or apart. Its probability is that of a tree CRF whose other
    nodes are latent (Fu2021), see `spacy_psa.structs.nested_spans`. A doc without sentence
    boundaries is one sentence; memory and time grow with its square, and a sentence has at most
    10,000 tokens. With `layers = "label"`, they grow with its length. Several labels of one span
    are learned as one joined label ("PER + ORG" in `labels`), and predicted as several spans.

    Spans that are on a doc before the component runs are evidence: the component keeps them and
    predicts the best analysis that agrees with them. It also keeps spans that its model cannot
    have, as it does not know their labels, they are too long or a sentence ends inside of them.
    Predicted spans do not cross these; with `layers = "label"`, those of their label do not overlap
    them. Its own earlier predictions are not evidence. A predicted span begins and ends with a
    word.

    In training, a reference doc without the key `spans_key` has no annotation to learn from.

    With `confidence`, or `decode = "mbr"` or "threshold", `doc.spans[spans_key].attrs["scores"]`
    has the probability of each span given the doc, which `span._.confidence` reads.

    Scores: `spans_<spans_key>_p`, `_r`, `_f` and `_per_type`, as those of spaCy's `spancat`.

    Args:
        model: Model[List[Doc], List[Floats2d]] with an array (spans, L) for each sentence, as
            `spacy-psa.SpanScorer.v1` makes it. Its setting `longest` is the most tokens of a span.
        reduction: whether an update follows the "mean" or the "sum" of its sentences' negative
            log likelihoods.
        spans_key: the span group of the spans, in docs to annotate and in training data.
        layers: "one" for spans of all labels that are nested or apart, "label" for a layer of each
            label: spans of one label do not overlap, those of different labels may in any way (see
            `spacy_psa.structs.label_layers`).
        unfitting: "refuse" raises an error that counts the gold spans that no analysis can have,
            because they cross another span or the bounds of a sentence; "drop" leaves them out of
            training, with a warning that counts them. Gold spans that are longer than the model
            allows are always left out so.
        several_labels: "join" learns several labels of one span as one joined label; "refuse"
            applies `unfitting` to all but the first.
        decode: "mbr" predicts the spans with the highest expected F1 over the document (minimum
            Bayes risk; `doc.user_data["document"]` joins sentences to a document), "viterbi" the
            most probable analysis, "threshold" all spans whose probability is at least `threshold`,
            also those that cross.
        threshold: a probability from 0 to 1, for `decode = "threshold"`.
        missing_spans_key: the key of `reference.spans` with stretches of text whose annotation may
            be incomplete: training sums over all spans that touch them. None for none.
        incorrect_spans_key: the key of `reference.spans` with spans that are known to be wrong;
            training lowers the probability of the analyses that have one of them. None for none.
        constituents_key: the key of `doc.spans` with the trees of a `constituency_parser` before
            this component: only their constituents can be predicted, and spans that are evidence.
            None for all spans. A doc without this group can have all spans.
        label_smoothing: the share of the loss that is the cross entropy with the uniform
            distribution over all analyses, from 0 to 1; see `ChainLabeler`.
        batch_spans: number of spans that go through the model together in prediction, of those
            that have at most `longest` tokens. With many labels there are fewer.

    Raises:
        InputError: if a setting has a value that is not possible.

    Examples:
        >>> import spacy
        >>> from spacy.tokens import Span
        >>> from spacy.training import Example
        >>> nlp = spacy.blank("en")
        >>> spans = nlp.add_pipe(
        ...     "crf_spans", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> reference = nlp.make_doc("University of Oslo")
        >>> gold = [Span(reference, 0, 3, "ORG"), Span(reference, 2, 3, "LOC")]
        >>> reference.spans["sc"] = gold
        >>> example = Example(nlp.make_doc("University of Oslo"), reference)
        >>> optimizer = nlp.initialize(lambda: [example])
        >>> optimizer.learn_rate = 0.03
        >>> for _ in range(40):
        ...     losses = nlp.update([example], sgd=optimizer)
        >>> doc = nlp("University of Oslo")
        >>> [(span.text, span.label_) for span in doc.spans["sc"]]
        [('University of Oslo', 'ORG'), ('Oslo', 'LOC')]
        >>> (analyses,) = spans.analyses([nlp.make_doc("University of Oslo")])
        >>> analyses.given(forbid=[(2, 3)]).best
        [University of Oslo]
    """

    rehearse = rehearse
    _rehearsal_model: Model | None = None  # the copy that nlp.resume_training keeps
    temperature = Temperature()
    """The number that log potentials are divided by before inference; see `Temperature`."""
    _analyses = NestedBatch
    decode = Setting(lambda name, value: check_choice(name, value, Decode))
    threshold = Setting(lambda name, value: check_rates(**{name: value}))

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "spans",
        *,
        spans_key: str = "sc",
        layers: Layers = "one",
        unfitting: Unfitting = "refuse",
        several_labels: SeveralLabels = "join",
        decode: Decode = "mbr",
        threshold: float = 0.5,
        missing_spans_key: str | None = None,
        incorrect_spans_key: str | None = None,
        constituents_key: str | None = None,
        label_smoothing: float = 0.0,
        batch_spans: int = 100_000,
        reduction: Reduction = "mean",
        **settings: Any,
    ):
        super().__init__(vocab, model, name, **settings)
        self.decode = decode
        self.threshold = threshold
        with naming(name):
            check_choice("reduction", reduction, Reduction)
            check_choice("layers", layers, Layers)
            check_choice("unfitting", unfitting, Unfitting)
            check_choice("several_labels", several_labels, SeveralLabels)
            check_rates(label_smoothing=label_smoothing)
            check_sizes(batch_spans=batch_spans)
            check_groups(self.required_spans_key, self.forbidden_spans_key, written=spans_key)
            for setting, key in {
                "constituents_key": constituents_key,
                "missing_spans_key": missing_spans_key,
                "incorrect_spans_key": incorrect_spans_key,
            }.items():
                check_other_group(setting, key, spans_key)
        self.store = NestedStore(spans_key, missing_spans_key, incorrect_spans_key)
        self.constituents_key = constituents_key
        self._label_smoothing = label_smoothing
        self.calibrated = Calibrated(self)
        self._reduction = reduction
        self._batch_spans = batch_spans
        self._longest = longest_span(name, model)
        self._layers = layers
        self._unfitting = unfitting
        self._several_labels = several_labels
        self._warned = False
        register()

    @property
    def spans_key(self) -> str:
        """The span group of the spans."""
        return self.store.spans_key

    @property
    def layers(self) -> Layers:
        """Whether spans are in "one" layer, or each "label" has its own."""
        return self._layers

    def _check_others(self, others: Iterable[Any]) -> None:
        for other in others:
            if getattr(other, "spans_key", None) == self.spans_key:
                warnings.warn(
                    f"{self.name}: it replaces the spans of {other.name} in "
                    f'doc.spans["{self.spans_key}"]: each component needs its own spans_key',
                    stacklevel=2,
                )

    # Labels

    @property
    def _outputs(self) -> int:
        return len(self.labels)

    @property
    def _span_labels(self) -> Sequence[str]:
        return simple_labels(self.labels)

    @property
    def _token_labels(self) -> Sequence[str]:
        return (*self._span_labels, OUTSIDE)

    def _find_labels(self, examples: Iterable[Example]) -> list[str]:
        labels: set[str] = set()
        every: list[Unfit] = []
        for example in examples:
            spans, _ = self.store.gold(self.name, example)
            doc = example.predicted
            fitting, unfit = fit(self, doc, spans, sentence_bounds(doc))
            every += unfit
            labels |= {label for own in fitting for *_, label in own}
            wrong = example.reference.spans.get(self.store.incorrect_spans_key or "") or ()
            labels |= {span.label_ for span in wrong}
        judge(self, every)
        return sorted(labels)

    def _widen_model(self) -> None:
        add_span_labels(self.model, self._outputs)

    # From docs to distributions

    def _divided(self, sizes: list[int], known: list[Any]) -> list[list[int]]:
        counts = span_counts(torch.tensor(sizes), self._longest).tolist()
        most = min(self._batch_spans, SCORES // len(self.labels))
        return list(batches_by_size(counts, most))

    def _given(self, scores: Sequence[Floats2d], known: Sequence[Known]) -> NestedSpans:
        flat = tempered(self, scores)
        lengths = self._lengths(map(len, scores))
        dist = self._distribution(flat, lengths)
        if not any(each.required or each.forbidden or each.allowed is not None for each in known):
            return dist
        allowed = None
        if any(each.allowed is not None for each in known):
            allowed = torch.ones(flat.shape, dtype=torch.bool)
            for rows, each in zip(allowed.split(list(map(len, scores))), known, strict=True):
                if each.allowed is not None:
                    rows &= torch.from_numpy(each.allowed)
        return dist.constrain(
            allowed,
            required=[each.required for each in known],
            forbidden=[each.forbidden for each in known],
        )

    def _distribution(self, flat: Tensor, lengths: Tensor) -> NestedSpans:
        kind = LabelLayers if self._layers == "label" else NestedSpans
        return kind(flat, lengths, self._longest)

    def _lengths(self, spans: Iterable[int]) -> Tensor:
        return torch.tensor([token_count(count, self._longest) for count in spans])

    # Inference

    def predict(self, docs: Iterable[Doc]) -> list[SpanPrediction]:
        """Predict the spans of each doc, by the settings `decode` and `confidence`.

        Raises:
            InputError: if no analysis of a sentence agrees with the evidence.
        """
        docs = list(docs)
        if self.decode == "mbr":
            return best_f1(docs, partial(infer, self), self.labels)
        if self.decode == "threshold":
            return self._likely(docs, self.threshold, partial(infer, self))
        read = partial(most_probable, labels=self.labels, scores=self.confidence)
        return list(map(joined, infer(self, docs, read)))

    def _likely(self, docs: list[Doc], least: float, infer: Infer) -> list[SpanPrediction]:
        """Find the spans whose probability is at least `least`."""
        return list(map(joined, infer(docs, partial(above, labels=self.labels, least=least))))

    def prediction_sets(self, docs: Iterable[Doc]) -> list[list[tuple[Span, float]]]:
        """Find sets of spans that hold the true ones with the probability of `coverage`.

        See `SpanLabeler.prediction_sets`. The spans of a set are in order, and may cross.

        Raises:
            InputError: if the component has no coverage.
        """
        docs = list(docs)
        likely = self._likely(docs, self.calibrated.least, partial(infer, self))
        return scored_spans(docs, likely)

    def set_annotations(self, docs: Iterable[Doc], scores: list[SpanPrediction]) -> None:
        """Write the predictions of `predict`, and the evidence, to the docs."""
        for doc, predicted in zip(docs, scores, strict=True):
            held = self._held(doc)
            kept = {(span.start, span.end, span.label_) for span in held}
            values = predicted.scores or [0.0] * len(predicted.spans)
            own = [
                (Span(doc, *node), value)
                for node, value in zip(predicted.spans, values)
                if node not in kept
            ]
            scored = predicted.scores is not None or (self.confidence and not predicted.spans)
            note(
                self.spans_key,
                doc,
                [span for span, _ in own],
                [value for _, value in own] if scored else None,
            )
            both = [*own, *((span, 1.0) for span in held)]  # evidence is certain
            both.sort(key=lambda pair: preorder(pair[0]))
            written = [value for _, value in both] if scored else None
            write_group(doc, self.spans_key, [span for span, _ in both], written)

    def _joined(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        return [Span(doc, *node) for part in parts for node in part]

    # Evidence

    def _held(self, doc: Doc) -> list[Span]:
        """Read the spans on a doc that no component has predicted."""
        if self.overwrite or self.spans_key not in doc.spans:
            return []
        group = spans_now(doc, self.spans_key)
        return [span for span in group if not is_noted(self.spans_key, span)]

    def _on_doc(self, doc: Doc, bounds: Bounds) -> Evidence:
        held = self._held(doc)
        if not held:
            return NOTHING
        every = Evidence([(span.start, span.end, span.label_) for span in held])
        check_consistent(
            self.name, doc, every, [], self._clash, "remove one, or set overwrite = true"
        )
        known = set(self._span_labels)
        inside = [
            (s.start, s.end, s.label_)
            for s in held
            if s.label_ in known and (self._longest is None or len(s) <= self._longest)
        ]
        return Evidence([s for s in inside if any(a <= s[0] and s[1] <= b for a, b in bounds)])

    def _read_evidence(
        self,
        doc: Doc,
        require: Iterable[Asked] = (),
        forbid: Iterable[Asked] = (),
        allow: Labels | None = None,
    ) -> Evidence:
        """Read what a user knows; `allow` names the labels of all spans over a token."""
        evidence = super()._read_evidence(doc, require, forbid, allow)
        if not all(OUTSIDE in may for may in evidence.allowed.values()):
            raise InputError(
                f"{self.name}: allow must name 'O' as well: it tells which labels the spans over a "
                "token may have, not that there is one; require the span for that"
            )
        return evidence

    def _check_evidence(self, doc: Doc, evidence: Evidence, bounds: Bounds, remedy: str) -> None:
        check_consistent(self.name, doc, evidence, bounds, self._clash, remedy)
        for start, end, label in evidence.required:
            if self._layers == "label" and not label:
                raise InputError(
                    f"{self.name}: {doc[start:end].text[:100]!r} is required without a label, but "
                    f'layers = "label" has a layer for each: {remedy}'
                )
            if self._longest is not None and end - start > self._longest:
                raise InputError(
                    f"{self.name}: {doc[start:end].text[:100]!r} ({label}) is required, but has "
                    f"more than {self._longest} tokens, the longest span of the model: {remedy}"
                )

    def _clash(self, first: Node, second: Node) -> str | None:
        if self._layers == "label":
            return overlap(first, second) if first[2] == second[2] else None
        both = [set(holding(label, self.labels)) for *_, label in (first, second)]
        if first[:2] == second[:2] and all(both) and not both[0] & both[1]:
            return "are labels that no span had together in training"
        return cross(first, second)

    def _translated(self, doc: Doc, evidence: Evidence, bounds: Bounds) -> list[Known]:
        check_lengths(self, doc, bounds)
        kept = [(span.start, span.end, span.label_) for span in self._held(doc)]
        only = None
        if (self.constituents_key or "") in doc.spans:
            trees = spans_now(doc, self.constituents_key or "")
            only = {(node.start, node.end) for node in trees}
        layered = self._layers == "label"
        return translate(doc, evidence, kept, bounds, self.labels, self._longest, only, layered)

    # Training

    def _trained(self, scores: list[Floats2d], flat: Tensor) -> NestedSpans:
        """Make the distributions that training sees; `flat` has all rows of `scores`."""
        return self._distribution(flat, self._lengths(len(array) for array in scores if len(array)))

    def get_loss(
        self, examples: Iterable[Example], scores: list[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        """Compute the negative log likelihood of the gold spans (Fu2021), and its gradient.

        `label_smoothing` and a teacher change it as in `ChainLabeler.get_loss`.

        Raises:
            InputError: if the component does not know a gold label, or if gold spans do not fit and
                `unfitting` is "refuse".
        """
        examples = examples if isinstance(examples, list) else list(examples)
        gold = self._gold(examples)

        def loss(flat: Tensor) -> Tensor:
            dist = self._trained(scores, flat)
            losses = -log_prob_of_gold(self, dist, gold)
            if self._label_smoothing:
                share = self._label_smoothing * torch.tensor(gold.annotated).to(losses)
                losses = smoothed(losses, dist, share)
            if self._teacher is not None:
                losses = with_teacher(self, losses, dist, examples)
            return self._reduced(losses)

        return differentiate(self.model, scores, loss)

    def _log_likelihood(
        self, flat: Tensor, lengths: Tensor, examples: list[Example], beta: Tensor
    ) -> Tensor:
        """Compute the log probability of the annotation; see `ChainLabeler._log_likelihood`."""
        dist = self._distribution(flat * beta, self._lengths(lengths.tolist()))
        return log_prob_of_gold(self, dist, read_gold(self, examples))

    def _read_gold(self, examples: Sequence[Example]) -> Gold:
        return read_gold(self, examples)

    # Evaluation

    def score(self, examples: Iterable[Example], **settings: Any) -> dict[str, Any]:
        """Score predicted docs by the component's scorer, which gets `spans_key`."""
        return super().score(examples, spans_key=self.spans_key, **settings)


make_crf_spans = component_factory(
    "crf_spans",
    NestedSpanLabeler,
    model=SPANS,
    scorer="spacy.spancat_scorer.v1",
    assigns=["doc.spans"],
    score_weights={
        "spans_sc_f": 1.0,
        "spans_sc_p": 0.0,
        "spans_sc_r": 0.0,
        "spans_sc_per_type": None,
    },
)
