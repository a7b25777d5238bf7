"""Figures of a corpus that show mistakes before a training does."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.docbin import read_docbin

RARE = 10
"""A label with fewer training examples is rare."""
EXAMPLES = 5
"""The number of examples of a mistake."""
LONG = 8
"""Spans of this length and longer share a row of a table."""
MOST_ROWS = 60
"""The number of labels in a table; the JSON has all."""
Layer = tuple[int, int, str]


def check_corpus(
    parts: Mapping[str, Sequence[Doc]], has_vector: Callable[[str], bool] | None = None
) -> dict[str, Any]:
    """Count what is in the parts of a corpus: docs by `train`, `dev` and so on.

    The first part is the one to train on. The result, all of it JSON, has `parts` with the size of
    each; `layers` with the labels, lengths and mistakes of entities, chunks, constituents and tags,
    as far as the corpus has them; `duplicates`, the sentences of other parts that are in the first
    part too, and those that are twice in a part; `without_vector`, the share of each part's words,
    or None.
    """
    layers = {
        name: _layer(parts, read, spans=name != "parts of speech", nested=name == "spans")
        for name, read in LAYERS.items()
        if any(read(doc) is not None for docs in parts.values() for doc in docs)
    }
    return {
        "parts": {part: _sizes(docs) for part, docs in parts.items()},
        "layers": layers,
        "duplicates": _duplicates(parts),
        "without_vector": None
        if has_vector is None
        else {part: _share_without(docs, has_vector) for part, docs in parts.items()},
    }


def check_files(
    files: Mapping[str, Path | None], has_vector: Callable[[str], bool] | None = None
) -> dict[str, Any]:
    """Check the parts of a corpus in `.spacy` files, as `check_corpus`; None for a missing part."""
    vocab = Vocab()
    parts = {part: read_docbin(path, vocab) for part, path in files.items() if path}
    return check_corpus(parts, has_vector)


def _ents(doc: Doc) -> list[Layer] | None:
    if not doc.has_annotation("ENT_IOB"):
        return None
    return [(ent.start, ent.end, ent.label_) for ent in doc.ents]


def _tags(doc: Doc) -> list[Layer] | None:
    if not doc.has_annotation("TAG"):
        return None
    return [(token.i, token.i + 1, token.tag_) for token in doc if token.tag]


def _group(name: str) -> Callable[[Doc], list[Layer] | None]:
    def read(doc: Doc) -> list[Layer] | None:
        if name not in doc.spans:
            return None
        return [(span.start, span.end, span.label_) for span in doc.spans[name]]

    return read


LAYERS: dict[str, Callable[[Doc], list[Layer] | None]] = {
    "entities": _ents,
    "spans": _group("sc"),
    "chunks": _group("chunks"),
    "constituents": _group("constituents"),
    "parts of speech": _tags,
}
"""The layers that components learn from, and how to read them; None if a doc lacks one."""


def _sizes(docs: Sequence[Doc]) -> dict[str, int]:
    return {
        "documents": len(docs),
        "sentences": sum(1 + len(_bounds(doc)) for doc in docs),
        "tokens": sum(map(len, docs)),
        "longest": max(map(len, docs), default=0),
    }


def _layer(
    parts: Mapping[str, Sequence[Doc]],
    read: Callable[[Doc], list[Layer] | None],
    spans: bool,
    nested: bool,
) -> dict[str, Any]:
    first, *others = parts
    counts: dict[str, Counter[str]] = {part: Counter() for part in parts}
    lengths: Counter[int] = Counter()
    across: dict[str, int] = dict.fromkeys(parts, 0)
    without: dict[str, int] = dict.fromkeys(parts, 0)
    crossing: dict[str, int] = dict.fromkeys(parts, 0)
    examples: dict[str, list[str]] = {part: [] for part in parts}
    for part, docs in parts.items():
        for doc in docs:
            layer = read(doc)
            without[part] += layer is None
            bounds = _bounds(doc)
            if nested:
                crossing[part] += _crossing(layer or ())
            for start, end, label in layer or ():
                counts[part][label] += 1
                lengths[end - start] += 1
                if any(start < bound < end for bound in bounds):
                    across[part] += 1
                    examples[part].append(f"{part}: {doc[start:end].text!r} ({label})")
    labels = sorted({label for counter in counts.values() for label in counter})
    figures: dict[str, Any] = {
        "labels": {label: {part: counts[part][label] for part in parts} for label in labels},
        "rare": [label for label in labels if 0 < counts[first][label] < RARE],
        "not in " + first: [
            label
            for label in labels
            if not counts[first][label] and any(counts[part][label] for part in others)
        ],
        "without_annotation": without,
    }
    if nested:
        figures["crossing"] = crossing
    if spans:
        figures["lengths"] = {str(length): lengths[length] for length in sorted(lengths)}
        figures["across_sentences"] = {
            **across,
            "examples": [text for texts in examples.values() for text in texts[:EXAMPLES]],
        }
    return figures


def _crossing(layer: Sequence[Layer]) -> int:
    """Count the spans that overlap a span which begins before them, and end after it."""
    places = sorted({(start, end) for start, end, _ in layer})
    return sum(
        any(first < start < end < last for first, end in places[:i])
        for i, (start, last) in enumerate(places)
    )


def _bounds(doc: Doc) -> list[int]:
    """Return the first token of each sentence but the first."""
    return [i for i in range(1, len(doc)) if doc[i].is_sent_start]


def _duplicates(parts: Mapping[str, Sequence[Doc]]) -> dict[str, dict[str, int]]:
    first, *_ = parts
    seen = {
        part: Counter(tuple(token.text.lower() for token in doc) for doc in docs)
        for part, docs in parts.items()
    }
    figures: dict[str, dict[str, int]] = {}
    for part, counts in seen.items():
        common = sum(count for words, count in counts.items() if words in seen[first])
        figures[part] = {} if part == first else {f"in {first}": common}
        figures[part]["twice"] = sum(count - 1 for count in counts.values())
    return figures


def _share_without(docs: Sequence[Doc], has_vector: Callable[[str], bool]) -> float:
    known: dict[str, bool] = {}
    missing = total = 0
    for doc in docs:
        for token in doc:
            if token.text not in known:
                known[token.text] = has_vector(token.text) or has_vector(token.text.lower())
            missing += not known[token.text]
            total += 1
    return missing / total if total else 0.0


def check_tables(figures: dict[str, Any]) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield the heads and the rows of tables of the figures."""
    sizes, duplicates = figures["parts"], figures["duplicates"]
    parts = list(sizes)
    rows = [[name, *(f"{sizes[part][name]:,}" for part in parts)] for name in sizes[parts[0]]]
    for name in dict.fromkeys(name for part in parts for name in duplicates[part]):
        cells = (duplicates[part].get(name) for part in parts)
        rows.append([f"duplicates {name}", *("" if n is None else f"{n:,}" for n in cells)])
    if (shares := figures["without_vector"]) is not None:
        rows.append(["words without vector", *(f"{100 * shares[part]:.1f}%" for part in parts)])
    yield ["", *parts], rows
    for name, layer in figures["layers"].items():
        labels = layer["labels"]
        rows = [[label, *(f"{labels[label][part]:,}" for part in parts)] for label in labels]
        if len(rows) > MOST_ROWS:
            rows = [*rows[:MOST_ROWS], [f"and {len(rows) - MOST_ROWS:,} more", *[""] * len(parts)]]
        yield [name, *parts], rows
        if "lengths" in layer and name != "constituents":
            yield ["tokens", name], list(_lengths(layer["lengths"]))


def _lengths(counts: dict[str, int]) -> Iterator[list[str]]:
    for length in range(1, LONG):
        if str(length) in counts:
            yield [str(length), f"{counts[str(length)]:,}"]
    long = sum(count for length, count in counts.items() if int(length) >= LONG)
    if long:
        yield [f"{LONG} or more, up to {max(map(int, counts))}", f"{long:,}"]


def possible_mistakes(figures: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each possible mistake, with its effect on a training."""
    first, *others = figures["parts"]
    for name, layer in figures["layers"].items():
        if layer["rare"]:
            yield f"{name}: fewer than 10 in {first}, hard to learn: {', '.join(layer['rare'])}"
        if unseen := layer[f"not in {first}"]:
            yield f"{name}: not in {first}, cannot be learned: {', '.join(unseen)}"
        across = layer.get("across_sentences", {})
        for part in figures["parts"]:
            if across.get(part):
                then = {
                    "constituents": "is not possible before they are corrected",
                    "spans": 'needs unfitting = "drop"',
                }.get(name, "leaves them out")
                examples = [text for text in across["examples"] if text.startswith(f"{part}: ")]
                yield (
                    f"{name}: {across[part]:,} in {part} go over the bounds of sentences; training "
                    f"{then}: {'; '.join(examples)}"
                )
        for part, count in layer.get("crossing", {}).items():
            if count:
                yield (
                    f"{name}: {count:,} in {part} overlap another without being inside it; "
                    'training needs unfitting = "drop", or layers = "label" if their labels differ'
                )
        for part, count in layer["without_annotation"].items():
            if count:
                yield f"{name}: {count:,} document(s) of {part} without annotation"
    for part in others:
        if count := figures["duplicates"][part][f"in {first}"]:
            share = 100 * count / figures["parts"][part]["documents"]
            yield (
                f"{part}: {count:,} sentences ({share:.1f}%) are also in {first}; scores on them "
                "mean little for new text"
            )


def task_of(figures: dict[str, Any]) -> str:
    """Return the task that a corpus is annotated for, the first of several."""
    order = {"spans": "spans", "entities": "ner", "chunks": "chunker", "constituents": "parser"}
    layers = figures["layers"]
    tasks = (task for name, task in order.items() if name in layers and layers[name]["labels"])
    return next(tasks, "tagger")
