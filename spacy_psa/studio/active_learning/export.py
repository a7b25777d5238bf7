"""Decisions as training data, and in the formats of other tools."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_psa.corpora import label_studio
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import write_docbin
from spacy_psa.corpora.format_by_name import format_of
from spacy_psa.corpora.marked_text import INCORRECT
from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.decisions import Decided, Labelled, agreement
from spacy_psa.studio.active_learning.export_format import SUFFIXES, ExportFormat
from spacy_psa.studio.active_learning.store import AnnotationStore, Component, StoredText

Row = dict[str, Any]


class DecidedText(NamedTuple):
    """A text with everything that is decided about it."""

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
    """The numbers of texts and spans that an export has written or left out."""

    texts: int = 0
    spans: int = 0
    """Those that were accepted, or tags."""
    what: str = "span"
    """Its name in the summary: span or tag."""
    partial: int = 0
    """Texts that are not decided completely, which the format has no form for."""
    wrong: int = 0
    """Wrong tags of a word besides the one that is written."""
    disagreements: int = 0
    by_annotator: Counter[str] = field(default_factory=Counter)
    """The number of written texts of each annotator."""

    @property
    def summary(self) -> str:
        """The counts in words."""
        parts = [f"{_many(self.texts, 'text')} with {_many(self.spans, self.what)}"]
        if len(self.by_annotator) > 1:
            shown = ", ".join(f"{name} {n}" for name, n in sorted(self.by_annotator.items()))
            parts.append(f"texts by annotator: {shown}")
        if self.disagreements:
            spans = _many(self.disagreements, self.what)
            parts.append(f"{spans} on which annotators disagree, left missing")
        if self.partial:
            parts.append(f"{_many(self.partial, 'text')} decided in part, left out")
        if self.wrong:
            parts.append(f"{_many(self.wrong, 'further wrong tag')} of a word, left out")
        return "; ".join(parts)


def decided_texts(
    store: AnnotationStore, annotator: str | None, counts: ExportCounts
) -> Iterator[DecidedText]:
    """Yield the texts about which something is decided.

    The decisions are those of an annotator, or those on which all agree. `counts` receives the
    disagreements.
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
        decided, disagreements = agreement(own.values())
        counts.disagreements += len(disagreements)
        if decided != Decided():
            rejected = _with_labels(decided.rejected, component.labels)
            yield DecidedText(store.text(number), decided._replace(rejected=rejected), tuple(own))


def _with_labels(spans: Iterable[Labelled], labels: Iterable[str]) -> tuple[Labelled, ...]:
    """Replace each span without label by one with each label."""
    named = ((s, e, name) for s, e, label in spans for name in ([label] if label else labels))
    return tuple(sorted(set(named)))


def reference_doc(item: DecidedText, component: Component, vocab: Vocab) -> Doc:
    """Make the doc that training reads, with missing and wrong spans.

    For a chunker the text must be complete, since `crf_chunker` reads no gaps. Of a wrong tag N,
    the token has the tag "!N", as `crf_tagger` reads it; of several, the last.
    """
    doc = item.text.tokens.doc(vocab)
    spans = [Span(doc, *span) for span in item.decided.accepted]
    if component.tags:
        for start, _, label in item.decided.rejected:
            doc[start].tag_ = f"!{label}"
        for start, _, label in item.decided.accepted:
            doc[start].tag_ = label
    elif component.spans_key is not None:
        doc.spans[component.spans_key] = spans
    else:
        outside = [doc[i : i + 1] for i in sorted(item.decided.outside)]
        doc.set_ents(spans, outside=outside, default="missing")
        if item.decided.rejected:
            doc.spans[INCORRECT] = [Span(doc, *span) for span in item.decided.rejected]
    if item.text.meta:
        doc.user_data["meta"] = item.text.meta
    return doc


def _unwritten(item: DecidedText) -> int:
    """Count the wrong tags of each word besides the last; a word with a tag needs none."""
    tagged = {start for start, _, _ in item.decided.accepted}
    wrong = [start for start, _, _ in item.decided.rejected if start not in tagged]
    return len(wrong) - len(set(wrong))


def resolve_export_format(path: Path, wanted: ExportFormat) -> ExportFormat:
    """Find the format of a file."""
    return format_of(path, wanted, SUFFIXES, "--format docbin, jsonl, label-studio or doccano")


def export(
    store: AnnotationStore,
    path: Path,
    form: ExportFormat = ExportFormat.auto,
    annotator: str | None = None,
) -> ExportCounts:
    """Write all decisions to a file, which appears whole or not at all.

    Label Studio and doccano have no form for what nobody has decided, so only texts that are
    decided completely are written for them, and the others are counted; as for a chunker, whose
    training reads no gaps, and for tags in JSON lines.
    """
    if path.exists() and path.samefile(store.path):
        raise InputError(f"{path}: is the file of the decisions; use another name")
    form = resolve_export_format(path, form)
    component, counts = _component(store), ExportCounts()
    counts.what = "tag" if component.tags else "span"
    with_gaps = (
        [ExportFormat.docbin] if component.tags else [ExportFormat.docbin, ExportFormat.jsonl]
    )
    gaps = component.spans_key is None and form in with_gaps
    chosen = []
    for item in decided_texts(store, annotator, counts):
        if not (gaps or item.complete):
            counts.partial += 1
            continue
        counts.texts += 1
        counts.spans += len(item.decided.accepted)
        counts.wrong += _unwritten(item) if component.tags else 0
        counts.by_annotator.update(item.annotators)
        chosen.append(item)
    if not chosen:
        left = f" ({counts.partial} are decided in part)" if counts.partial else ""
        raise InputError(f"{store.path}: no text is decided{left}; decide about some first")
    if form is ExportFormat.docbin:
        vocab = Vocab()
        write_docbin((reference_doc(item, component, vocab) for item in chosen), path)
    else:
        write = WRITERS[form]
        if component.tags and form is ExportFormat.jsonl:
            write = _tagged_jsonl
        _write_json(path, map(write, chosen), form)
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


def _offsets(item: DecidedText) -> tuple[str, list[tuple[int, int]]]:
    """Find the text, the first character of each token, and the one after its last."""
    offsets, at = [], 0
    for word, space in zip(item.text.tokens.words, item.text.tokens.spaces):
        offsets.append((at, at + len(word)))
        at += len(word) + space
    return item.text.tokens.text, offsets


def _spans(spans: Iterable[Labelled], offsets: list[tuple[int, int]]) -> list[Row]:
    return [
        {"start": offsets[start][0], "end": offsets[end - 1][1], "label": label}
        for start, end, label in spans
    ]


def _jsonl(item: DecidedText) -> Row:
    text, offsets = _offsets(item)
    missing = sorted(set(range(len(offsets))) - item.decided.tokens)
    return {
        "text": text,
        "tokens": [{"start": start, "end": end} for start, end in offsets],
        "ents": _spans(item.decided.accepted, offsets),
        "missing": [offsets[i] for i in missing],
        "incorrect": _spans(item.decided.rejected, offsets),
        "meta": item.text.meta,
    }


def _tagged_jsonl(item: DecidedText) -> Row:
    text, offsets = _offsets(item)
    tokens = [
        {"start": start, "end": end, "tag": tag}
        for (start, end), (_, _, tag) in zip(offsets, item.decided.accepted, strict=True)
    ]
    return {"text": text, "tokens": tokens, "ents": [], "meta": item.text.meta}


def _label_studio(item: DecidedText) -> Row:
    text, offsets = _offsets(item)
    spans = [(*span.values(), None) for span in _spans(item.decided.accepted, offsets)]
    result = label_studio.regions(text, spans, f"{item.text.number}-")
    return {
        "id": item.text.number,
        "data": {"text": text},
        "meta": item.text.meta,
        "annotations": [{"result": result, "was_cancelled": False}],
    }


def _doccano(item: DecidedText) -> Row:
    text, offsets = _offsets(item)
    labels = [list(span.values()) for span in _spans(item.decided.accepted, offsets)]
    return {"id": item.text.number, "text": text, "label": labels}


WRITERS: dict[ExportFormat, Callable[[DecidedText], Row]] = {
    ExportFormat.jsonl: _jsonl,
    ExportFormat.label_studio: _label_studio,
    ExportFormat.doccano: _doccano,
}


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
