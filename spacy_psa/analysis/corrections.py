"""Probable errors of an annotation as JSON lines, the decisions about them, and corrected docs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from spacy.tokens import Doc, Span, SpanGroup

from spacy_psa.analysis.label_errors import Suspect
from spacy_psa.corpora.atomic import write_text
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.sentences import name_of_document

CONTEXT = 25
"""Tokens before and after a place that a row shows."""
GROUP = "spans:"
"""Before the name of a span group that is called like another layer."""
Row = dict[str, Any]
Kinds = Mapping[str, type | tuple[type, ...]]
"""The keys of a row and what they have."""
KEYS: Kinds = {
    **dict.fromkeys(("number", "doc", "first"), int),
    **dict.fromkeys(("layer", "kind"), str),
    **dict.fromkeys(("annotated", "proposed", "words"), list),
    "chance": (int, float),
}
DECISION: Kinds = {"number": int, "accept": (bool, NoneType)}


def layer_of(pipe: Any) -> str:
    """Return "ents", "tags", or the span group that a component writes.

    A group that is called "ents" or "tags" has `GROUP` before its name.
    """
    if isinstance(pipe, CRFTagger):
        return "tags"
    key = pipe.store.spans_key if isinstance(pipe, SpanLabeler) else pipe.spans_key
    return GROUP + key if key in ("ents", "tags") else key or "ents"


def make_rows(suspects: Iterable[Suspect], layer: str, docs: Sequence[Doc]) -> list[Row]:
    """Describe suspects, in their order.

    The keys are `number` (from 1), `doc` (from 0), `document` (its name), `layer`, `kind`,
    `chance`, `score`, `p_annotated`, `p_proposed`, `annotated` and `proposed` (start, end and label
    over tokens), and `words` around the place, from the token `first` on.
    """
    rows = []
    for number, each in enumerate(suspects, 1):
        doc = docs[each.doc]
        first = max(0, each.start - CONTEXT)
        rows.append(
            {
                "number": number,
                "doc": each.doc,
                "document": name_of_document(doc),
                "layer": layer,
                "kind": each.kind,
                "chance": round(each.chance, 4),
                "score": round(each.score, 6),
                "p_annotated": each.p_annotated,
                "p_proposed": each.p_proposed,
                "annotated": each.annotated,
                "proposed": each.proposed,
                "first": first,
                "words": [token.text_with_ws for token in doc[first : each.end + CONTEXT]],
            }
        )
    return rows


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write rows as JSON lines; the file appears complete or not at all."""
    write_text(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))


def read_rows(path: Path, keys: Kinds = KEYS, log: bool = False) -> list[Row]:
    """Read the rows that `write_rows` wrote, or other JSON lines whose objects have some keys.

    The last line of a `log` without its end was not written whole, and does not count.
    """
    rows = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); check the path") from error
    *lines, last = text.split("\n")  # a line may have other ends inside
    for number, line in enumerate([*lines, last] if last.strip() and not log else lines, 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not _has(row, keys):
            raise InputError(
                f"{path}:{number}: not a line of `spacy-psa find-errors`; "
                "use the file that it wrote"
            )
        rows.append(row)
    return rows


def _has(row: Row, keys: Kinds) -> bool:
    """Whether a row has keys, and spans that are possible; a person may have edited it."""
    if not all(key in row and isinstance(row[key], kind) for key, kind in keys.items()):
        return False
    spans = [span for key in ("annotated", "proposed") if key in keys for span in row[key]]
    return all(
        isinstance(span, list) and [*map(type, span)] == [int, int, str] and 0 <= span[0] < span[1]
        for span in spans
    )


def decisions_path(path: Path) -> Path:
    """Return the log of the decisions about a file of rows."""
    return path.with_name(f"{path.stem}.decisions.jsonl")


def read_decisions(path: Path) -> dict[int, bool]:
    """Read whether each decided row is accepted; the last decision about a row counts."""
    log = decisions_path(path)
    decided: dict[int, bool] = {}
    for row in read_rows(log, DECISION, log=True) if log.exists() else ():
        if row["accept"] is None:  # undone
            decided.pop(row["number"], None)
        else:
            decided[row["number"]] = row["accept"]
    return decided


def correct(docs: Sequence[Doc], rows: Iterable[Row]) -> None:
    """Replace the annotation of docs by the corrections of rows, which must fit it."""
    for row in rows:
        place, layer = f"row {row['number']}", row["layer"]
        if not 0 <= row["doc"] < len(docs):
            raise InputError(f"{place}: there is no document {row['doc']}; use the same corpus")
        doc = docs[row["doc"]]
        gone, new = ([(*span,) for span in row[key]] for key in ("annotated", "proposed"))
        if layer == "tags":
            there = {(s, e, doc[s].tag_) for s, e, _ in gone if e <= len(doc)}
            kept: list[Span] = []
        else:
            key = layer.removeprefix(GROUP)
            spans = list(doc.ents if layer == "ents" else doc.spans.get(key) or ())
            there = {(span.start, span.end, span.label_) for span in spans}
            kept = [span for span in spans if (span.start, span.end, span.label_) not in gone]
        if not there.issuperset(gone) or any(end > len(doc) for _, end, _ in new):
            raise InputError(
                f"{place}: document {row['doc']} does not have the annotation that this row "
                "corrects; use the corpus in which the errors were found"
            )
        if layer == "tags":
            for start, _, label in new:
                doc[start].tag_ = label
            continue
        kept += [Span(doc, *span) for span in new]
        kept.sort(key=lambda span: (span.start, -span.end))  # those of equal bounds have an order
        if layer == "ents":
            taken = {token.i for span in kept for token in span}
            missing = [doc[t.i : t.i + 1] for t in doc if not t.ent_iob and t.i not in taken]
            try:
                doc.set_ents(kept, missing=missing)
            except ValueError as error:
                raise InputError(
                    f"{place}: its correction overlaps other entities of document {row['doc']}; "
                    "change the row or decide against it"
                ) from error
        else:
            doc.spans[key] = SpanGroup(doc, name=key, spans=kept)
