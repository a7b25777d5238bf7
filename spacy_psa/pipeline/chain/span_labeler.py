"""The base class of the components that label spans without overlap by tags of their tokens."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy
import torch
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from torch import Tensor

from spacy_psa.errors import InputError, check_amounts, check_choice, naming
from spacy_psa.pipeline.chain.chain_predictor import Allowed, Tags
from spacy_psa.pipeline.chain.decoders import Decode, SpanDecoder, SpanPrediction, make_decoder
from spacy_psa.pipeline.chain.doc_spans import clip
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.own_predictions import set_own
from spacy_psa.pipeline.chain.sequence_labeler import Reduction, SequenceLabeler
from spacy_psa.pipeline.chain.span_predictor import SpanPredictor
from spacy_psa.pipeline.chain.span_tags import (
    MISSING,
    LegalTransitions,
    Spans,
    SpanScheme,
    TagFormat,
)
from spacy_psa.scoring.span_group import score_group
from spacy_psa.sentences import Bounds
from spacy_psa.structs.chain import LinearChain


class SpanLabeler(SequenceLabeler, SpanPredictor):
    """Base class of the components whose tags say where labelled spans begin and end.

    `labels` are the labels of spans, `tags` the tags of tokens that encode them.

    A subclass reads gold spans (`gold_spans`, `reference_spans`) and the spans on a doc
    (`evidence`), and writes spans (`write`).

    Args:
        vocab: the vocabulary of the pipeline.
        model: see `SequenceLabeler`.
        name: the name of the component in the pipeline.
        scheme: "BIOES" tells the end of a span and single tokens apart (Wei2020 section 5.1);
            "BIO" does not.
        confidence: whether `doc.spans[name]` gets the predicted spans too, with the probability
            of each given the doc in `attrs["scores"]`.
        decode: "viterbi" predicts the most probable analysis, "mbr" the spans with the highest
            expected F1 over the doc (minimum Bayes risk). "threshold" writes all spans whose
            probability is at least `threshold` to `doc.spans[name]` with their scores,
            overlapping ones too, and nothing else.
        threshold: a probability from 0 to 1, for `decode = "threshold"`.
        overwrite: False to take the spans that are on a doc before the component runs as
            evidence; the component keeps them and predicts the best analysis that agrees with
            them. True to ignore them.
        max_grad_norm: see `SequenceLabeler`.
        reduction: see `SequenceLabeler`.
        label_smoothing: see `SequenceLabeler`.
        recall_cost: what training adds to the log potential of O at each token of a gold span
            (softmax-margin, Gimpel, Smith 2010; for the recall of entities, Mohit et al. 2012); 0
            for nothing. The model learns to find a span against these odds, so it misses fewer and
            finds more wrong ones. Probabilities lean towards spans, too.
        batch_tokens: see `SequenceLabeler`.
        scorer: called with the examples in `score`; None for no scores.

    Raises:
        InputError: if a setting has a value that is not possible.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> ner = nlp.add_pipe(
        ...     "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> isinstance(ner, SpanLabeler)
        True
        >>> ner.add_label("PER")
        1
        >>> optimizer = nlp.initialize()
        >>> doc = nlp.make_doc("Ada met Bob")
        >>> ada = Span(doc, 0, 1, "PER")
        >>> doc.set_ents([ada], default="missing")  # evidence
        >>> [(ent.text, ent.label_) for ent in ner(doc).ents][0]
        ('Ada', 'PER')
        >>> ner.posterior([ada]).round(6)
        array([1.])
    """

    kept = ("confidence", "decoding", "overwrite", "threshold")
    crossing: int
    """How many gold spans over the bounds of a sentence training has met."""
    uncertainty: ClassVar[str | None] = None  # the custom attribute of the doc for the entropy

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        scheme: TagFormat,
        confidence: bool,
        decode: Decode,
        threshold: float,
        overwrite: bool,
        required_spans_key: str | None,
        forbidden_spans_key: str | None,
        max_grad_norm: float,
        reduction: Reduction,
        label_smoothing: float,
        recall_cost: float,
        batch_tokens: int,
        scorer: Callable | None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            scorer=scorer,
            max_grad_norm=max_grad_norm,
            reduction=reduction,
            label_smoothing=label_smoothing,
            batch_tokens=batch_tokens,
            confidence=confidence,
            required_spans_key=required_spans_key,
            forbidden_spans_key=forbidden_spans_key,
        )
        self.overwrite = overwrite
        self.threshold = threshold
        self.decoding = decode
        with naming(name):
            check_choice("scheme", scheme, TagFormat)
            check_amounts(recall_cost=recall_cost)
        self.recall_cost = recall_cost
        self._scheme = SpanScheme((), scheme)
        self.crossing = 0
        self.remember()

    @property
    def decoding(self) -> Decode:
        """The setting `decode`, the way to choose spans: "viterbi", "mbr" or "threshold".

        Raises:
            InputError: if it is set to something else.
        """
        return self._decoding

    @decoding.setter
    def decoding(self, value: Decode) -> None:
        with naming(self.name):
            make_decoder(value, 0.5, scores=False, entropy=False)
        self._decoding = value
        if self.decoder.overlapping:
            register()

    @property
    def threshold(self) -> float:
        """The least probability of a span, for `decode = "threshold"`.

        Raises:
            InputError: if it is set to something that is not from 0 to 1.
        """
        return self._threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        with naming(self.name):
            make_decoder("threshold", value, scores=False, entropy=False)
        self._threshold = value

    @property
    def decoder(self) -> SpanDecoder:
        """The way to choose spans, by the present `decoding`, `threshold` and `confidence`.

        Raises:
            SettingError: if there is no such `decoding`, or if `threshold` is not from 0 to 1.
        """
        wanted = self.confidence and self.uncertainty is not None
        return make_decoder(self.decoding, self.threshold, scores=self.confidence, entropy=wanted)

    @abstractmethod
    def gold_spans(self, example: Example) -> tuple[Spans, Allowed]:
        """Read the gold spans of an example.

        Returns:
            The spans (start, end, label) over the tokens of the predicted doc, and a bool array
            (n,) that is true for tokens without annotation.
        """

    @abstractmethod
    def write(self, doc: Doc, spans: list[Span], outside: Allowed) -> None:
        """Write spans to a doc in place of those on it.

        Args:
            doc: the doc.
            spans: the spans, in order.
            outside: (n,) bool, the tokens that are known to be in no span, as `evidence` gives
                them.
        """

    @abstractmethod
    def reference_spans(self, reference: Doc) -> Iterable[Span] | None:
        """Read the gold spans of a reference doc; None if it has no such annotation."""

    @property
    def scheme(self) -> SpanScheme:
        """The translation between spans and tags."""
        if self._scheme.labels != self.labels:
            self._scheme = SpanScheme(self.labels, self._scheme.tag_format)
        return self._scheme

    @property
    def tags(self) -> tuple[str, ...]:
        return self.scheme.tags

    def legal(self) -> LegalTransitions:
        return self.scheme.legal()

    # Inference

    def predict(self, docs: Iterable[Doc]) -> list[SpanPrediction]:
        """Predict the spans of each doc, by the settings `decode` and `confidence`.

        Raises:
            InputError: if no legal analysis of a sentence agrees with the evidence.
        """
        return self.decoder.predict(list(docs), self.infer, self.scheme)

    # Annotation

    def set_annotations(self, docs: Iterable[Doc], scores: list[SpanPrediction]) -> None:
        """Write the predictions of `predict` beside the evidence on the docs."""
        decoder = self.decoder
        for doc, predicted in zip(docs, scores, strict=True):
            spans = [Span(doc, *span) for span in predicted.spans]
            values = predicted.scores or [0.0] * len(spans)
            if decoder.overlapping:
                set_own(self.name, doc, spans)
            else:
                spans, values = self._beside_evidence(doc, spans, values)
            if decoder.scores:
                self._write_scores(doc, spans, values)
            if decoder.entropy and self.uncertainty:
                doc._.set(self.uncertainty, predicted.entropy)

    def _beside_evidence(
        self, doc: Doc, spans: list[Span], values: list[float]
    ) -> tuple[list[Span], list[float]]:
        """Write the predicted spans and the evidence.

        Returns:
            Both in order, and their probabilities.
        """
        held, outside = self.held(doc)
        if held:
            taken = {i for span in held for i in range(span.start, span.end)}
            free = [(s, value) for s, value in zip(spans, values) if s.start not in taken]
            set_own(self.name, doc, [span for span, _ in free])
            both = [*free, *((span, 1.0) for span in held)]  # evidence is certain
            both.sort(key=lambda pair: pair[0].start)
            spans, values = [span for span, _ in both], [value for _, value in both]
        else:  # they are in order
            set_own(self.name, doc, spans)
        self.write(doc, spans, outside)
        return spans, values

    def _write_scores(self, doc: Doc, spans: list[Span], values: list[float]) -> None:
        attrs = {"scores": numpy.array(values)}
        doc.spans[self.name] = SpanGroup(doc, name=self.name, attrs=attrs, spans=spans)

    # Training

    def gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        spans, missing = self.gold_spans(example)
        for _, _, label in spans:
            self.check_label(label)
        gold = []
        across = [s for s in spans if not any(a <= s[0] and s[1] <= b for a, b in bounds)]
        if across:
            missing = missing.copy()
            for start, end, _ in across:
                missing[start:end] = True
            self._tell_of_crossing(example, across)
            spans = [span for span in spans if span not in across]
        for start, end in bounds:
            tags = self.scheme.encode(end - start, clip(spans, start, end))
            tags[missing[start:end]] = MISSING
            gold.append(tags)
        return gold

    def _tell_of_crossing(self, example: Example, spans: Spans) -> None:
        """Count gold spans over the bounds of a sentence, and warn of the first."""
        if not self.crossing:
            start, end, label = spans[0]
            text = example.predicted[start:end].text
            warnings.warn(
                f"{self.name}: {text!r} ({label}) goes over the bounds of a sentence; the tokens "
                "of such spans count as not annotated. `spacy-psa debug data` counts them",
                stacklevel=2,
            )
        self.crossing += len(spans)

    def check_label(self, label: str) -> None:
        """Check that the component knows a label of the training data.

        Raises:
            InputError: if it does not.
        """
        if label not in self.labels:
            raise InputError(
                f"{self.name}: the training data has the label {label!r}, which is not among "
                f"the labels {', '.join(self.labels)}: initialize with all labels"
            )

    def with_costs(self, chain: LinearChain, gold: Tensor) -> LinearChain:
        """Add `recall_cost` to the log potential of O, tag 0, at the tokens of gold spans.

        Args:
            chain: the distributions of B sentences.
            gold: (B, n) tags, MISSING if a token has no annotation.
        """
        if not self.recall_cost:
            return chain
        costs = gold.new_zeros((*gold.shape, len(self.tags)), dtype=chain.dtype)
        costs[..., 0] = self.recall_cost * (gold > 0)
        return chain.tilted(costs)

    def gold_allowed(self, gold: Tensor) -> Tensor:
        allowed = super().gold_allowed(gold)
        if self.scheme.tag_format == "BIO":
            # The tags of BIOES say themselves that a gold span ends; after a span in BIO, a token
            # without annotation must not go on with it.
            goes_on = torch.zeros(len(self.tags), len(self.tags), dtype=torch.bool)
            begins, insides = self.scheme.columns("B"), self.scheme.columns("I")
            goes_on[begins, insides] = goes_on[insides, insides] = True
            before = torch.nn.functional.pad(gold[:, :-1], (1, 0)).clamp(min=0)
            allowed &= ~(goes_on.to(gold.device)[before] & (gold == MISSING)[..., None])
        return allowed

    # Evaluation

    def score(self, examples: Iterable[Example], **settings: Any) -> dict[str, Any]:
        """Score predicted docs by the component's scorer.

        With `decode = "threshold"`, the scores also have `spans_<name>_p`, `spans_<name>_r`,
        `spans_<name>_f` and `spans_<name>_per_type` of the spans in `doc.spans[name]`, which
        `spacy find-threshold` can use.

        Args:
            examples: predicted docs with their references.
            settings: passed to the scorer.
        """
        examples = list(examples)
        figures = dict(super().score(examples, **settings))
        if self.decoder.overlapping:
            figures |= score_group(examples, self.name, self.reference_spans)
        return figures
