"""`crf_chunker`: base phrases (chunks) by a linear-chain CRF (J Table 4)."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Config, Model

from spacy_psa.pipeline.chain.sequence_labeler import Allowed, Reduction
from spacy_psa.pipeline.chain.ner import DEFAULT_MODEL
from spacy_psa.pipeline.chain.span_tags import Kind, Spans
from spacy_psa.pipeline.chain.span_labeler import Decode, SpanLabeler, labels_of, same_tokens


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


@Language.factory(
    "crf_chunker",
    assigns=["doc.spans"],
    default_config={
        "model": Config().from_str(DEFAULT_MODEL)["model"],
        "spans_key": "chunks",
        "scheme": "BIOES",
        "max_grad_norm": 5.0,
        "reduction": "mean",
        "batch_tokens": 4000,
        "confidence": False,
        "decode": "viterbi",
        "threshold": 0.5,
        "overwrite": False,
        "scorer": {"@scorers": "spacy-psa.chunk_scorer.v1"},
    },
    default_score_weights={
        "chunks_f": 1.0,
        "chunks_p": 0.0,
        "chunks_r": 0.0,
        "chunks_per_type": None,
    },
)
def make_crf_chunker(
    nlp: Language,
    name: str,
    model: Model,
    spans_key: str,
    scheme: Kind,
    max_grad_norm: float,
    reduction: Reduction,
    batch_tokens: int,
    confidence: bool,
    decode: Decode,
    threshold: float,
    overwrite: bool,
    scorer: Callable | None,
) -> "CRFChunker":
    """The factory `crf_chunker`; see `CRFChunker` for its settings."""
    return CRFChunker(
        nlp.vocab,
        model,
        name,
        spans_key=spans_key,
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


class CRFChunker(SpanLabeler):
    """Writes doc.spans[spans_key]: the most probable chunks of each sentence (J Table 4).

    spans_key: where gold chunks are read and predicted ones written.
    Other settings: see `SpanLabeler` and `SequenceLabeler`.

    A reference doc without that key has no annotation to learn from. Chunks that stand on a
    doc before the component runs are kept, and the rest of the analysis is the best that
    agrees with them, unless overwrite is true.
    """

    def __init__(self, vocab: Vocab, model: Model, name: str, *, spans_key: str, **settings: Any):
        super().__init__(vocab, model, name, **settings)
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
