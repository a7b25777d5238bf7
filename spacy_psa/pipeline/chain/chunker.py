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

from spacy_psa.pipeline.chain.decoders import Decode
from spacy_psa.pipeline.chain.default_model import DEFAULT_MODEL
from spacy_psa.pipeline.chain.sequence_labeler import Allowed, Reduction
from spacy_psa.pipeline.chain.span_labeler import SpanLabeler, labels_of, same_tokens
from spacy_psa.pipeline.chain.span_tags import Spans, TagFormat
from spacy_psa.pipeline.factory import component_factory


def score_chunks(examples: Iterable[Example], *, spans_key: str, **_: Any) -> dict[str, Any]:
    """`chunks_p`, `chunks_r`, `chunks_f` and `chunks_per_type`: exact matches of labelled
    chunks, as conlleval counts them, over the docs whose reference has chunks."""
    return Scorer.score_spans(
        examples,
        "chunks",
        getter=lambda doc, _: doc.spans.get(spans_key, ()),
        has_annotation=lambda doc: spans_key in doc.spans,
        allow_overlap=True,
    )


def chunk_scorer(spans_key: str = "chunks") -> Callable[..., dict[str, Any]]:
    """`spacy-psa.chunk_scorer.v1`: see `score_chunks`."""
    return partial(score_chunks, spans_key=spans_key)


class CRFChunker(SpanLabeler):
    """Writes doc.spans[spans_key]: the most probable chunks of each sentence (Wei2020 Table 4).

    spans_key: where gold chunks are read and predicted ones written.
    Other settings: see `SpanLabeler` and `SequenceLabeler`.

    A reference doc without that key has no annotation to learn from. Chunks that stand on a
    doc before the component runs are kept, and the rest of the analysis is the best that
    agrees with them, unless overwrite is true.
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
        batch_tokens: int = 4000,
        confidence: bool = False,
        decode: Decode = "viterbi",
        threshold: float = 0.5,
        overwrite: bool = False,
        scorer: Callable | None = None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            scheme=scheme,
            max_grad_norm=max_grad_norm,
            reduction=reduction,
            batch_tokens=batch_tokens,
            confidence=confidence,
            decode=decode,
            threshold=threshold,
            overwrite=overwrite,
            scorer=scorer,
        )
        self.spans_key = spans_key

    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        groups = (eg.reference.spans.get(self.spans_key) or () for eg in examples)
        return sorted(set().union(*(labels_of(group) for group in groups)))

    def gold_spans(self, example: Example) -> tuple[Spans, Allowed]:
        length = len(example.predicted)
        if self.spans_key not in example.reference.spans:
            return [], numpy.ones(length, dtype=bool)
        spans: Iterable[Span] = example.reference.spans[self.spans_key]
        if not same_tokens(example):
            spans = example.get_aligned_spans_y2x(spans, allow_overlap=False)
        found = [(span.start, span.end, span.label_) for span in spans]
        return found, numpy.zeros(length, dtype=bool)

    def evidence(self, doc: Doc) -> tuple[list[Span], Allowed]:
        spans = sorted(doc.spans.get(self.spans_key) or (), key=lambda span: span.start)
        return spans, numpy.zeros(len(doc), dtype=bool)

    def write(self, doc: Doc, spans: list[Span], outside: Allowed) -> None:
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=spans)

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
