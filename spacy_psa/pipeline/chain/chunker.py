"""`crf_chunker`: base phrases (chunks) by a linear-chain CRF (Wei2020 Table 4)."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_psa.errors import InputError, naming
from spacy_psa.pipeline.asked_spans import check_groups
from spacy_psa.pipeline.chain.chain_predictor import Allowed
from spacy_psa.pipeline.chain.decoders import Decode
from spacy_psa.pipeline.chain.default_model import DEFAULT_MODEL
from spacy_psa.pipeline.chain.doc_spans import conflict, labels_of, same_tokens
from spacy_psa.pipeline.chain.sequence_labeler import Reduction
from spacy_psa.pipeline.chain.span_labeler import SpanLabeler
from spacy_psa.pipeline.chain.span_tags import Spans, TagFormat
from spacy_psa.pipeline.factory import component_factory


def score_chunks(
    examples: Iterable[Example],
    *,
    spans_key: str | None = None,
    component_key: str = "chunks",
    **_: Any,
) -> dict[str, Any]:
    """Score predicted chunks by exact match of offsets and labels, as conlleval counts them.

    Only docs whose reference has chunks count.

    Args:
        examples: predicted docs with their references.
        spans_key: the key of `doc.spans` that holds the chunks; None for `component_key`.
        component_key: the key of the component that predicted.

    Returns:
        The scores `chunks_p`, `chunks_r` and `chunks_f`, from 0 to 1, and `chunks_per_type`, the
        same for each label. They are None if no reference has chunks.

    Examples:
        >>> import spacy
        >>> from spacy.tokens import Span
        >>> from spacy.training import Example
        >>> nlp = spacy.blank("en")
        >>> predicted, reference = nlp("The rain stopped"), nlp("The rain stopped")
        >>> predicted.spans["chunks"] = [Span(predicted, 0, 2, "NP")]
        >>> reference.spans["chunks"] = [Span(reference, 0, 2, "NP"), Span(reference, 2, 3, "VP")]
        >>> scores = score_chunks([Example(predicted, reference)], spans_key="chunks")
        >>> scores["chunks_p"], scores["chunks_r"]
        (1.0, 0.5)
    """
    key = component_key if spans_key is None else spans_key
    return Scorer.score_spans(
        examples,
        "chunks",
        getter=lambda doc, _: doc.spans.get(key, ()),
        has_annotation=lambda doc: key in doc.spans,
        allow_overlap=True,
    )


def chunk_scorer(spans_key: str | None = None) -> Callable[..., dict[str, Any]]:
    """Make the registered scorer `spacy-psa.chunk_scorer.v1`.

    Args:
        spans_key: the key of `doc.spans` that holds the chunks; None for that of the component.

    Returns:
        A function from examples to scores; see `score_chunks`.
    """
    return partial(score_chunks, spans_key=spans_key)


class CRFChunker(SpanLabeler):
    """Finds base phrases (chunks) and writes them to `doc.spans[spans_key]`.

    The component `crf_chunker` predicts the most probable chunks of each sentence under a
    linear-chain CRF (Wei2020 Table 4). A doc without sentence boundaries is one sentence.

    Chunks that are on a doc before the component runs are evidence: the component keeps them and
    predicts the best analysis that agrees with them. It also keeps chunks whose labels the model
    does not know, and predicts nothing over them. Its own earlier predictions are not evidence.

    A predicted chunk begins and ends with a word, and may have white space inside. With
    `scheme = "BIO"` it may end with white space. Chunks on a doc stay as they are.

    In training, a reference doc without the key `spans_key` has no annotation to learn from.

    Scores: `chunks_p`, `chunks_r`, `chunks_f` and `chunks_per_type` (see `score_chunks`); with
    `decode = "threshold"` also the scores of `doc.spans[name]` (see `score`).

    Args:
        vocab: the vocabulary of the pipeline.
        model: Model[List[Doc], List[Floats2d]] that gives one array of potentials for each
            sentence, as `spacy-psa.CRF.v1` and `spacy-psa.Softmax.v1` do. The default is
            PSA-BiLSTM-CRF.
        name: the name of the component in the pipeline.
        spans_key: the key of `doc.spans` where gold chunks are read and predicted ones written.
        scheme: "BIOES" tells the end of a chunk and single tokens apart (Wei2020 section 5.1);
            "BIO" does not.
        max_grad_norm: largest joint L2 norm of the gradients of this component in an update
            (Wei2020 section 5.2: 5.0); 0 for no limit. Gradients of a shared tok2vec or transformer
            before it are not counted.
        reduction: whether an update follows the "mean" or the "sum" of its sentences' negative
            log likelihoods (Wei2020 Eq. 3 has the sum).
        label_smoothing: the share of the loss that is the cross entropy with the uniform
            distribution over the legal analyses, from 0 to 1 (Szegedy et al. 2016 section 7, for
            analyses in the place of classes); 0 for none.
        recall_cost: what training adds to the log potential of O at each token of a gold chunk
            (softmax-margin, Gimpel, Smith 2010; for the recall of entities, Mohit et al. 2012); 0
            for nothing. The model learns to find a chunk against these odds, so it misses fewer and
            finds more wrong ones. Probabilities lean towards chunks, too.
        batch_tokens: number of tokens, padding included, that go through the model together in
            prediction.
        confidence: whether `doc.spans[name]` gets the predicted chunks too, with the probability
            of each given the doc in `attrs["scores"]`; `span._.confidence` reads it.
        decode: "viterbi" predicts the most probable analysis. "mbr" predicts the chunks with the
            highest expected F1 over the doc (minimum Bayes risk), and writes them to
            `doc.spans[name]`, too, with their scores. "threshold" writes all chunks whose
            probability is at least `threshold` to `doc.spans[name]` with their scores, overlapping
            ones too, and leaves `doc.spans[spans_key]` as it is.
        threshold: a probability from 0 to 1, for `decode = "threshold"`.
        overwrite: True to ignore and replace the chunks that are on a doc; False to take them as
            evidence.
        required_spans_key: the key of `doc.spans` with spans that the chunks must include; None
            for no such spans. A span without label may have any.
        forbidden_spans_key: the key of `doc.spans` with spans that the chunks must not include;
            None for no such spans. A span without label is forbidden with all labels.
        scorer: called with the examples in `score`; None for no scores.

    Raises:
        InputError: if a setting has a value that is not possible; and if `decode` is "threshold"
            and the component has the name `spans_key`, because `doc.spans[name]` would then
            replace the evidence.

    Examples:
        >>> import spacy
        >>> from spacy.tokens import Span
        >>> from spacy.training import Example
        >>> nlp = spacy.blank("en")
        >>> chunker = nlp.add_pipe(
        ...     "crf_chunker", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> reference = nlp.make_doc("The rain stopped")
        >>> reference.spans["chunks"] = [Span(reference, 0, 2, "NP"), Span(reference, 2, 3, "VP")]
        >>> example = Example(nlp.make_doc("The rain stopped"), reference)
        >>> optimizer = nlp.initialize(lambda: [example])
        >>> optimizer.learn_rate = 0.03
        >>> for _ in range(6):
        ...     losses = nlp.update([example], sgd=optimizer)
        >>> doc = nlp("The rain stopped")
        >>> [(chunk.text, chunk.label_) for chunk in doc.spans["chunks"]]
        [('The rain', 'NP'), ('stopped', 'VP')]
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "chunker",
        *,
        spans_key: str = "chunks",
        scheme: TagFormat = "BIOES",
        max_grad_norm: float = 5.0,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
        recall_cost: float = 0.0,
        batch_tokens: int = 4000,
        confidence: bool = False,
        decode: Decode = "viterbi",
        threshold: float = 0.5,
        overwrite: bool = False,
        required_spans_key: str | None = None,
        forbidden_spans_key: str | None = None,
        scorer: Callable | None = None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            scheme=scheme,
            max_grad_norm=max_grad_norm,
            reduction=reduction,
            label_smoothing=label_smoothing,
            recall_cost=recall_cost,
            batch_tokens=batch_tokens,
            confidence=confidence,
            decode=decode,
            threshold=threshold,
            overwrite=overwrite,
            required_spans_key=required_spans_key,
            forbidden_spans_key=forbidden_spans_key,
            scorer=scorer,
        )
        with naming(name):
            check_groups(required_spans_key, forbidden_spans_key, spans_key)
        # The other decoders write the same chunks to both groups, the evidence included.
        if name == spans_key and self.decoder.overlapping:
            raise InputError(
                f"{name}: decode is {decode!r}, which would replace the chunks in "
                f'doc.spans["{name}"]: give the component another name than its spans_key'
            )
        self.spans_key = spans_key

    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        groups = (self.gold_chunks(eg.reference) or [] for eg in examples)
        return sorted(set().union(*(labels_of(group) for group in groups)))

    def gold_chunks(self, reference: Doc) -> list[Span] | None:
        """Read the chunks of a reference doc; None if it has no such annotation.

        Raises:
            InputError: if two chunks overlap, or if one has no token.
        """
        if self.spans_key not in reference.spans:
            return None
        spans = list(reference.spans[self.spans_key])
        fault = conflict(spans)
        if fault is not None:
            raise InputError(
                f'{self.name}: {fault.text} in spans["{self.spans_key}"] of the reference '
                f"{reference.text[:100]!r}, so no tags have all chunks: correct the annotation"
            )
        return spans

    def gold_spans(self, example: Example) -> tuple[Spans, Allowed]:
        length = len(example.predicted)
        spans = self.gold_chunks(example.reference)
        if spans is None:
            return [], numpy.ones(length, dtype=bool)
        if not same_tokens(example):
            spans = example.get_aligned_spans_y2x(spans, allow_overlap=False)
        found = [(span.start, span.end, span.label_) for span in spans]
        return found, numpy.zeros(length, dtype=bool)

    def evidence(self, doc: Doc) -> tuple[list[Span], Allowed]:
        spans = sorted(doc.spans.get(self.spans_key) or (), key=lambda span: span.start)
        return spans, numpy.zeros(len(doc), dtype=bool)

    def write(self, doc: Doc, spans: list[Span], outside: Allowed) -> None:
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=spans)

    def score(self, examples: Iterable[Example], **settings: Any) -> dict[str, Any]:
        """Score predicted docs by the component's scorer, which gets `spans_key`.

        Args:
            examples: predicted docs with their references.
            settings: passed to the scorer.
        """
        return super().score(examples, component_key=self.spans_key, **settings)

    def reference_spans(self, reference: Doc) -> Iterable[Span] | None:
        return reference.spans.get(self.spans_key)


make_crf_chunker = component_factory(
    "crf_chunker",
    CRFChunker,
    model=DEFAULT_MODEL,
    scorer="spacy-psa.chunk_scorer.v1",
    assigns=["doc.spans"],
    score_weights={"chunks_f": 1.0, "chunks_p": 0.0, "chunks_r": 0.0, "chunks_per_type": None},
)
