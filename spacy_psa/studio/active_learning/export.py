"""Decisions as training data, and in the formats of other tools."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import write_docbin
from spacy_psa.corpora.format_by_name import format_of
from spacy_psa.corpora.marked_text import INCORRECT
from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.agreement import agreement
from spacy_psa.studio.active_learning.decisions import Decided, Labelled
from spacy_psa.studio.active_learning.export_format import SUFFIXES, ExportFormat
from spacy_psa.studio.active_learning.store import AnnotationStore, Component, StoredText

Row = dict[str, Any]


class DecidedText(NamedTuple):
    """A text with what is decided about it."""

    text: StoredText
    decided: Decided
    annotators: tuple[str, ...] = ()
    """Those whose decisions count."""

    @property
    def complete(self) -> bool:
        """Whether all of its tokens are decided."""
        return self.decided.covers(len(self.text.tokens.words))


@dataclass
class ExportCounts:
    """What an export has written, and what it has left out.

    Examples:
        >>> print(ExportCounts(texts=2, spans=3, disagreements=1).summary)
        2 texts with 3 spans; 1 span on which annotators disagree, left missing
    """

    texts: int = 0
    spans: int = 0
    partial: int = 0
    """Texts that are not decided completely, which the format has no form for."""
    disagreements: int = 0
    by_annotator: Counter[str] = field(default_factory=Counter)
    """The number of written texts of each annotator."""

    @property
    def summary(self) -> str:
        """The counts in words."""
        parts = [f"{_many(self.texts, 'text')} with {_many(self.spans, 'span')}"]
        if len(self.by_annotator) > 1:
            shown = ", ".join(f"{name} {n}" for name, n in sorted(self.by_annotator.items()))
            parts.append(f"texts by annotator: {shown}")
        if self.disagreements:
            spans = _many(self.disagreements, "span")
            parts.append(f"{spans} on which annotators disagree, left missing")
        if self.partial:
            parts.append(f"{_many(self.partial, 'text')} decided in part, left out")
        return "; ".join(parts)


def decided_texts(
    store: AnnotationStore, annotator: str | None, counts: ExportCounts
) -> Iterator[DecidedText]:
    """Yield the texts about which something is decided.

    Args:
        store: the file.
        annotator: whose decisions count; None for those on which all agree.
        counts: gets the disagreements.

    Raises:
        InputError: if nothing is decided, or not by this annotator.
    """
    component = _component(store)
    every = store.all_decided(component.name)
    names = sorted({name for own in every.values() for name in own})
    if annotator is not None and annotator not in names:
        known = ", ".join(names) or "nobody"
        raise InputError(f"{store.path}: {annotator!r} has decided nothing; {known} has")
    for number, own in sorted(every.items()):
        if annotator is not None:
            own = {name: decided for name, decided in own.items() if name == annotator}
        found = agreement(own)
        counts.disagreements += len(found.disagreements)
        if found.decided != Decided():
            rejected = _with_labels(found.decided.rejected, component.labels)
            decided = found.decided._replace(rejected=rejected)
            yield DecidedText(store.text(number), decided, tuple(own))


def _with_labels(spans: Iterable[Labelled], labels: Iterable[str]) -> tuple[Labelled, ...]:
    """Put all labels in place of none."""
    named = ((s, e, one) for s, e, label in spans for one in ([label] if label else labels))
    return tuple(sorted(set(named)))


def reference_doc(one: DecidedText, component: Component, vocab: Vocab) -> Doc:
    """Make the doc that training takes, with missing and wrong spans.

    Args:
        one: the text. For a chunker it must be complete, since `crf_chunker` takes no gaps.
        component: what the decisions are about.
        vocab: the vocabulary of the doc.
    """
    doc = one.text.tokens.doc(vocab)
    spans = [Span(doc, *span) for span in one.decided.accepted]
    if component.spans_key is not None:
        doc.spans[component.spans_key] = spans
    else:
        outside = [doc[i : i + 1] for i in sorted(one.decided.outside)]
        doc.set_ents(spans, outside=outside, default="missing")
        if one.decided.rejected:
            doc.spans[INCORRECT] = [Span(doc, *span) for span in one.decided.rejected]
    if one.text.meta:
        doc.user_data["meta"] = one.text.meta
    return doc


def resolve_export_format(path: Path, wanted: ExportFormat) -> ExportFormat:
    """Give the format of a file.

    Raises:
        InputError: if `wanted` is auto and the name does not tell the format.
    """
    return format_of(path, wanted, SUFFIXES, "--format docbin, jsonl, label-studio or doccano")


def export(
    store: AnnotationStore,
    path: Path,
    form: ExportFormat = ExportFormat.auto,
    annotator: str | None = None,
) -> ExportCounts:
    """Write what is decided to a file, which appears whole or not at all.

    Label Studio and doccano have no form for what nobody has decided, so only texts that are
    decided completely are written for them, and the others are counted; as for a chunker, whose
    training takes no gaps.

    Args:
        store: the decisions.
        path: the file to write.
        form: its format.
        annotator: whose decisions count; None for those on which all agree.

    Raises:
        InputError: if there is nothing to write, or the file cannot be written or is that of the
            decisions.
    """
    if path.exists() and path.samefile(store.path):
        raise InputError(f"{path}: is the file of the decisions; give another name")
    form = resolve_export_format(path, form)
    component, counts = _component(store), ExportCounts()
    gaps = component.spans_key is None and form in (ExportFormat.docbin, ExportFormat.jsonl)
    chosen = []
    for one in decided_texts(store, annotator, counts):
        if not (gaps or one.complete):
            counts.partial += 1
            continue
        counts.texts += 1
        counts.spans += len(one.decided.accepted)
        counts.by_annotator.update(one.annotators)
        chosen.append(one)
    if not chosen:
        left = f" ({counts.partial} are decided in part)" if counts.partial else ""
        raise InputError(f"{store.path}: no text is decided{left}; decide about some first")
    if form is ExportFormat.docbin:
        vocab = Vocab()
        write_docbin((reference_doc(one, component, vocab) for one in chosen), path)
    else:
        _write_json(path, (WRITERS[form](one) for one in chosen), form)
    return counts


def _component(store: AnnotationStore) -> Component:
    if store.component is None:
        raise InputError(f"{store.path}: nothing is decided in this file; annotate first")
    return store.component


def _write_json(path: Path, rows: Iterable[Row], form: ExportFormat) -> None:
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    listed = form is ExportFormat.label_studio
    before, between, after = ("[\n", ",\n", "\n]\n") if listed else ("", "\n", "\n")
    with atomic_path(path) as temporary:
        temporary.write_text(before + between.join(lines) + after, encoding="utf8")


def _offsets(one: DecidedText) -> tuple[str, list[tuple[int, int]]]:
    """Find the first character of each token, and the one after its last."""
    found, at = [], 0
    for word, space in zip(one.text.tokens.words, one.text.tokens.spaces):
        found.append((at, at + len(word)))
        at += len(word) + space
    return one.text.tokens.text, found


def _spans(spans: Iterable[tuple[int, int, str]], offsets: list[tuple[int, int]]) -> list[Row]:
    return [
        {"start": offsets[start][0], "end": offsets[end - 1][1], "label": label}
        for start, end, label in spans
    ]


def _jsonl(one: DecidedText) -> Row:
    text, offsets = _offsets(one)
    missing = sorted(set(range(len(offsets))) - one.decided.tokens)
    return {
        "text": text,
        "tokens": [{"start": start, "end": end} for start, end in offsets],
        "ents": _spans(one.decided.accepted, offsets),
        "missing": [offsets[i] for i in missing],
        "incorrect": _spans(one.decided.rejected, offsets),
        "meta": one.text.meta,
    }


def _label_studio(one: DecidedText) -> Row:
    text, offsets = _offsets(one)

    def units(at: int) -> int:
        """Count characters as a browser does."""
        return len(text[:at].encode("utf-16-le", "surrogatepass")) // 2

    values = [
        {
            "start": units(span["start"]),
            "end": units(span["end"]),
            "text": text[span["start"] : span["end"]],
            "labels": [span["label"]],
        }
        for span in _spans(one.decided.accepted, offsets)
    ]
    fixed = {"from_name": "label", "to_name": "text", "type": "labels"}
    result = [{"id": f"{one.text.number}-{i}", **fixed, "value": v} for i, v in enumerate(values)]
    return {
        "id": one.text.number,
        "data": {"text": text},
        "meta": one.text.meta,
        "annotations": [{"result": result, "was_cancelled": False}],
    }


def _doccano(one: DecidedText) -> Row:
    text, offsets = _offsets(one)
    labels = [list(span.values()) for span in _spans(one.decided.accepted, offsets)]
    return {"id": one.text.number, "text": text, "label": labels}


WRITERS: dict[ExportFormat, Callable[[DecidedText], Row]] = {
    ExportFormat.jsonl: _jsonl,
    ExportFormat.label_studio: _label_studio,
    ExportFormat.doccano: _doccano,
}


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
