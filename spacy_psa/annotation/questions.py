"""Questions about the documents of a run of annotation, in addition to their annotation."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from spacy_psa.annotation.annotator import Ask
from spacy_psa.annotation.input import Record
from spacy_psa.annotation.run import Watch
from spacy_psa.corpora.atomic import write_json
from spacy_psa.loading import find_pipe

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from spacy_psa.pipeline.chain.mention_counts import TextCounts


class Question(Protocol):
    """A question about annotated documents, and the use of its answers."""

    ask: Ask

    def take(self, record: Record, answer: Any) -> None:
        """Take the answer for the document of a record."""

    def finish(self, watch: Watch) -> None:
        """Write the result, after the last document."""


class Counting:
    """Counts the mentions and the distinct entities of all documents, with 95% intervals.

    Args:
        name: the name of the component.
        corrections: its `counts`.
        path: the JSON file to write.
    """

    def __init__(self, name: str, corrections: Any, path: Path) -> None:
        from spacy_psa.pipeline.chain.mention_counts import TextCounts

        self.ask: Ask = partial(_count, name)
        self.corrections = corrections
        self.path = path
        self.total = TextCounts()

    @classmethod
    def of(cls, nlp: "Language", name: str | None, path: Path) -> "Counting":
        """Count with a component of a pipeline.

        Raises:
            InputError: if there is no such `crf_ner` or `crf_chunker`.
        """
        from spacy_psa.pipeline.chain.spans import SpanLabeler

        pipe: SpanLabeler = find_pipe(nlp, name, SpanLabeler, "crf_ner or crf_chunker")
        return cls(pipe.name, pipe.counts, path)

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


def _count(name: str, nlp: "Language", docs: "list[Doc]") -> "list[TextCounts]":
    from spacy_psa.pipeline.chain.mention_counts import count_mentions

    return count_mentions(nlp.get_pipe(name), docs)
