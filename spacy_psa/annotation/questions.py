"""Questions about the documents of a run of annotation, in addition to their annotation."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_args

from spacy_psa.annotation.annotator import Ask
from spacy_psa.annotation.input import Record
from spacy_psa.annotation.rows import ANNOTATION, json_line
from spacy_psa.annotation.run import Watch
from spacy_psa.annotation.writers import Encode
from spacy_psa.corpora.atomic import write_json, write_text
from spacy_psa.errors import InputError
from spacy_psa.loading import find_pipe

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from spacy_psa.analysis.calibration import SpanKind
    from spacy_psa.pipeline.chain.mention_counts import TextCounts


REDACTION = "redaction"
"""The key of doc.user_data for the result."""
AROUND = 60
"""The characters of context that a person sees."""


class Question(Protocol):
    """A question about annotated documents, and the use of its answers."""

    ask: Ask
    encode: Encode | None
    """The encoder of JSON lines; None for that of the annotation."""

    def take(self, record: Record, answer: Any) -> None:
        """Add the answer for the document of a record."""

    def finish(self, watch: Watch) -> None:
        """Write the result, after the last document."""


MakeQuestion = Callable[["Language"], Question]
"""Makes a question for a pipeline."""


class Counting:
    """Counts the mentions and the distinct entities of all documents, with 95% intervals.

    A `crf_ner`, `crf_chunker` or `crf_spans` counts; its `name` is None if there is only one.
    `path` is the JSON file to write.
    """

    encode: Encode | None = None

    def __init__(self, nlp: "Language", name: str | None, path: Path) -> None:
        from spacy_psa.pipeline.chain.mention_counts import TextCounts

        pipe = find_labeler(nlp, name)
        self.ask: Ask = partial(_count, pipe.name)
        self.corrections = pipe.calibrated.counts
        self.path = path
        self.total = TextCounts()

    def take(self, record: Record, answer: "TextCounts") -> None:
        self.total.add(answer)

    def finish(self, watch: Watch) -> None:
        rows = self.total.intervals(self.corrections)
        figures = {
            label: {
                kind: {"number": number, "low": max(0.0, number - half), "high": number + half}
                for kind, (number, half) in kinds.items()
            }
            for label, kinds in rows.items()
        }
        calibrated = self.corrections is not None
        write_json(self.path, {"level": 0.95, "calibrated": calibrated, "labels": figures})
        for label, kinds in rows.items():
            shown = [
                f"{number:,.0f} ± {half:,.0f} {kind}" for kind, (number, half) in kinds.items()
            ]
            watch.say(f"{label}: {', '.join(shown)}")
        if not calibrated:
            watch.say(
                "The intervals are not calibrated and too narrow: run `spacy-psa calibrate MODEL "
                "DEV.spacy --counts`"
            )


class Redacting:
    """Replaces the spans of some labels in all documents, and lists those to be looked at.

    `name` is that of the `crf_ner`, `crf_chunker` or `crf_spans`; None if there is only one. It has
    to promise the `recall`; None for any. `path` is the file of JSON lines for a person; None for
    none.
    """

    def __init__(
        self,
        nlp: "Language",
        name: str | None,
        labels: Sequence[str],
        recall: float | None,
        text_key: str,
        path: Path | None,
    ) -> None:
        from spacy_psa.pipeline.chain.redaction import thresholds

        pipe = find_labeler(nlp, name)
        thresholds(pipe, labels, recall or 0.0)
        self.ask: Ask = partial(_redact, pipe.name, tuple(labels))
        if text_key == "redacted":
            raise InputError(
                "--text-key redacted: the redacted text has this key; rename it in the input"
            )
        self.encode: Encode | None = partial(_redacted_line, text_key=text_key)
        self.path = path
        self.rows: list[dict[str, Any]] = []
        self.replaced = self.texts = 0

    def take(self, record: Record, answer: tuple[int, list[dict[str, Any]]]) -> None:
        replaced, rows = answer
        self.replaced += replaced
        self.texts += bool(rows)
        self.rows += [{"where": record.where, **row} for row in rows]

    def finish(self, watch: Watch) -> None:
        if self.path is not None:
            write_text(self.path, "".join(json_line(row).decode("utf8") for row in self.rows))
        watch.say(
            f"{self.replaced:,} parts replaced; {len(self.rows):,} of them, in {self.texts:,} "
            "texts, are not predicted and should be looked at"
        )


def find_labeler(nlp: "Language", name: str | None) -> "SpanKind":
    """Find the component that predicts spans, by its name; None if there is only one."""
    from spacy_psa.analysis.calibration import SPAN_KINDS, SpanKind

    pipe: SpanKind = find_pipe(nlp, name, get_args(SpanKind), SPAN_KINDS)
    return pipe


def _redact(name: str, labels: Sequence[str], nlp: "Language", docs: "list[Doc]") -> list[Any]:
    from spacy_psa.pipeline.chain.redaction import redact, shown_spans

    pipe: Any = nlp.get_pipe(name)
    answers = []
    for doc, shown, analyses in zip(docs, shown_spans(pipe, docs, labels), pipe.analyses(docs)):
        redaction = redact(doc, shown, analyses.best)
        doc.user_data[REDACTION] = redaction
        rows = [
            {
                "text": doc.text[part.source_start : part.source_end],
                "label": part.label,
                "score": part.score,
                "before": doc.text[max(0, part.source_start - AROUND) : part.source_start],
                "after": doc.text[part.source_end : part.source_end + AROUND],
                "source": [part.source_start, part.source_end],
            }
            for part in redaction.replaced
            if part.review
        ]
        answers.append((len(redaction.replaced), rows))
    return answers


def _redacted_line(doc: "Doc", text_key: str) -> tuple[bytes, list[str]]:
    """Encode a document for a `JsonlWriter`, without what was replaced."""
    redaction = doc.user_data[REDACTION]
    meta = doc.user_data.get("meta", {})
    written = (text_key, "redacted", *ANNOTATION)
    parts = [
        {
            "start": part.start,
            "end": part.end,
            "label": part.label,
            "score": part.score,
            "source": [part.source_start, part.source_end],
            "review": part.review,
        }
        for part in redaction.replaced
    ]
    others = {key: value for key, value in meta.items() if key not in written}
    replaced = [key for key in meta if key in written]
    return json_line({**others, text_key: redaction.text, "redacted": parts}), replaced


def _count(name: str, nlp: "Language", docs: "list[Doc]") -> "list[TextCounts]":
    from spacy_psa.pipeline.chain.mention_counts import count_mentions

    return count_mentions(nlp.get_pipe(name), docs)
