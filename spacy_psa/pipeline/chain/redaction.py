"""Texts in which the spans of a promised recall are replaced by their labels."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from spacy_psa.errors import InputError
from spacy_psa.pipeline.inference import infer, scored_spans


def shown_spans(
    pipe: Any, docs: Sequence[Doc], labels: Iterable[str] | None = None
) -> list[list[tuple[Span, float]]]:
    """Find all spans that the promise of `spacy-psa calibrate --recall` needs.

    The docs stay as they are. The evidence on them counts.

    Args:
        pipe: a `crf_ner`, `crf_chunker` or `crf_spans`.
        labels: the labels of the spans; None for all.

    Returns:
        For each doc, the spans with their probabilities, in order. They may overlap.

    Raises:
        InputError: if there is no promise for a label, or the component does not know it.
    """
    least = thresholds(pipe, pipe._span_labels if labels is None else labels)

    def exact(docs: list[Doc], read: Callable[[Any], Any]) -> Any:
        # In double precision, as the probabilities of the calibration.
        return infer(pipe, docs, lambda batch: read(batch._replace(dist=batch.dist.double())))

    scored = scored_spans(docs, pipe._likely(list(docs), min(least.values()), exact))
    return [[(span, p) for span, p in own if p >= least.get(span.label_, 2.0)] for own in scored]


def thresholds(pipe: Any, labels: Iterable[str], recall: float = 0.0) -> dict[str, float]:
    """Look up the least probability of the spans of each label.

    A label without a promise of its own has that of all labels. InputError if a recall of at least
    `recall` is not promised, or the component does not know a label.
    """
    promises, least = pipe.calibrated.recall or {}, {}
    for label in labels:
        if label not in pipe._span_labels:
            known = ", ".join(pipe._span_labels)
            raise InputError(f"{pipe.name}: has no label {label}; choose {known}")
        promise = promises.get(label) or promises.get("")
        if promise is None or promise.recall < recall - 1e-9:  # as it was saved
            has = f"only a recall of {promise.recall:g}" if promise else "no recall"
            raise InputError(
                f"{pipe.name}: {has} is promised for {label}: run `spacy-psa calibrate MODEL "
                f"DEV.spacy --recall {recall or 0.99:g}`"
            )
        least[label] = promise.least
    if not least:
        raise InputError("no label is given: name one at least")
    return least


class Replaced(NamedTuple):
    """A part of a text that was replaced by a label; all offsets are in characters."""

    start: int
    """Its start in the new text."""
    end: int
    label: str
    """The label of its most probable span."""
    score: float
    """The probability of this span."""
    source_start: int
    """Its start in the text of the doc."""
    source_end: int
    review: bool
    """Whether a person should look at it: the best analysis has none of its spans."""


class Redaction(NamedTuple):
    """A text without the spans of some labels."""

    text: str
    replaced: list[Replaced]

    def moved(self, offset: int) -> int:
        """Translate an offset in the old text into one in the new text.

        An offset inside a part that was replaced becomes its start.
        """
        shift = 0
        for part in self.replaced:
            if offset < part.source_end:
                return part.start if offset > part.source_start else offset + shift
            shift = part.end - part.source_end
        return offset + shift


def redact(doc: Doc, shown: Iterable[tuple[Span, float]], best: Iterable[Span]) -> Redaction:
    """Replace spans by their labels, as in "[PERSON] met [PERSON]".

    Spans that overlap are replaced together, by the label of the most probable one.

    Args:
        shown: the spans with their probabilities.
        best: the spans of the best analysis.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob.")
        >>> redaction = redact(doc, [(Span(doc, 0, 1, "PER"), 0.9)], [])
        >>> redaction.text, redaction.moved(4)
        ('[PER] met Bob.', 6)
    """
    predicted = {(span.start, span.end, span.label_) for span in best}
    groups: list[list[tuple[Span, float]]] = []
    for span, p in sorted(shown, key=lambda pair: pair[0].start):
        if groups and span.start < max(other.end for other, _ in groups[-1]):
            groups[-1].append((span, p))
        else:
            groups.append([(span, p)])
    text, replaced, done = "", [], 0
    for group in groups:
        top, score = max(group, key=lambda pair: pair[1])
        start, end = group[0][0].start_char, max(span.end_char for span, _ in group)
        text += doc.text[done:start]
        label = f"[{top.label_}]"
        known = any((span.start, span.end, span.label_) in predicted for span, _ in group)
        place = len(text), len(text) + len(label)
        replaced.append(Replaced(*place, top.label_, score, start, end, not known))
        text, done = text + label, end
    return Redaction(text + doc.text[done:], replaced)
