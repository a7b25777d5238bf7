"""`crf_chunker`: base phrases (chunks) by a linear-chain CRF (Wei2020 Table 4)."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.labeler import Allowed
from spacy_psa.pipeline.chain.span_tags import Spans
from spacy_psa.pipeline.chain.spans import SpanLabeler, SpanStore, same_tokens
from spacy_psa.pipeline.default_models import CHAIN
from spacy_psa.pipeline.evidence import overlap, shown
from spacy_psa.pipeline.settings import component_factory
from spacy_psa.pipeline.written import spans_now, write_group


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
        spans_key: the key of `doc.spans` that holds the chunks; None for `component_key`.
        component_key: the key of the component that predicted.

    Returns:
        The scores `chunks_p`, `chunks_r` and `chunks_f`, from 0 to 1, and `chunks_per_type`, the
        same for each label. They are None if no reference has chunks.
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


class ChunkStore(SpanStore):
    """Finds base phrases (chunks) and writes them to `doc.spans[spans_key]`, as `crf_chunker`.

    The component is a `SpanLabeler`. In training, a reference doc without the key `spans_key` has
    no annotation to learn from.

    With `confidence`, `doc.spans[name]` also gets the predicted chunks, with the probability of
    each given the doc in `attrs["scores"]`, which `span._.confidence` reads.

    Scores: `chunks_p`, `chunks_r`, `chunks_f` and `chunks_per_type` (see `score_chunks`); with
    `decode = "threshold"` also the scores of `doc.spans[name]`.

    Args:
        spans_key: the key of `doc.spans` where gold chunks are read and predicted ones written.

    Raises:
        InputError: if `decode` is "threshold" and the component has the name `spans_key`, because
            `doc.spans[name]` would then replace the evidence.

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

    spans_key: str

    def __init__(self, *, spans_key: str = "chunks"):
        self.spans_key = spans_key

    def gold(self, name: str, example: Example) -> tuple[Spans, Allowed]:
        length = len(example.predicted)
        spans = self.reference(name, example.reference)
        if spans is None:
            return [], numpy.ones(length, dtype=bool)
        missing = numpy.zeros(length, dtype=bool)
        if not same_tokens(example):
            gold, spans = spans, example.get_aligned_spans_y2x(spans, allow_overlap=False)
            for span in gold if len(spans) < len(gold) else ():
                if not example.get_aligned_spans_y2x([span]):  # it ends inside of a token
                    missing[example.alignment.y2x[span.start : span.end]] = True
        return [(s.start, s.end, s.label_) for s in spans], missing

    def reference(self, name: str, doc: Doc) -> list[Span] | None:
        """Read the chunks of a reference doc; None if it has no such annotation.

        InputError if two chunks overlap, or if one has no token.
        """
        if self.spans_key not in doc.spans:
            return None
        spans = list(doc.spans[self.spans_key])
        nodes = sorted((span.start, span.end, span.label_) for span in spans)
        wrong = [
            f"a span ({label}) before token {start} has no token"
            for start, end, label in nodes
            if start == end
        ]
        wrong += [
            f"{shown(doc, first)} and {shown(doc, second)} overlap"
            for first, second in pairwise(nodes)
            if overlap(first, second)
        ]
        if wrong:
            raise InputError(
                f'{name}: {wrong[0]} in spans["{self.spans_key}"] of the reference '
                f"{doc.text[:100]!r}, so no tags have all chunks: correct the annotation"
            )
        return spans

    def read(self, doc: Doc) -> tuple[list[Span], Allowed | None]:
        if self.spans_key not in doc.spans:
            return [], None
        return sorted(spans_now(doc, self.spans_key), key=lambda span: span.start), None

    def write(self, doc: Doc, spans: list[Span], outside: Allowed | None) -> None:
        write_group(doc, self.spans_key, spans)


make_crf_chunker = component_factory(
    "crf_chunker",
    SpanLabeler,
    store=ChunkStore,
    model=CHAIN,
    scorer="spacy-psa.chunk_scorer.v1",
    assigns=["doc.spans"],
    score_weights={"chunks_f": 1.0, "chunks_p": 0.0, "chunks_r": 0.0, "chunks_per_type": None},
)
