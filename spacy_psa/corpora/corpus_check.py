"""Figures of a corpus that show mistakes before a training does."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spacy.tokens import Doc

RARE = 10
"""A label with fewer training examples is rare."""
EXAMPLES = 5
"""The number of examples of a mistake."""
Layer = tuple[int, int, str]


def check_corpus(
    parts: Mapping[str, Sequence[Doc]], has_vector: Callable[[str], bool] | None = None
) -> dict[str, Any]:
    """Count what is in the parts of a corpus.

    Args:
        parts: the docs of `train`, `dev` and so on; the first part is the one to train on.
        has_vector: tells whether a word has a vector.

    Returns:
        `parts` with the size of each; `layers` with the labels, lengths and mistakes of entities,
        chunks, constituents and tags, as far as the corpus has them; `duplicates`, the sentences
        of other parts that are in the first part too, and those that are twice in a part;
        `without_vector`, the share of each part's words, or None. All of it is JSON.
    """
    layers = {
        name: _layer(parts, read, spans=name != "parts of speech")
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
    parts: Mapping[str, Sequence[Doc]], read: Callable[[Doc], list[Layer] | None], spans: bool
) -> dict[str, Any]:
    first, *others = parts
    counts: dict[str, Counter[str]] = {part: Counter() for part in parts}
    lengths: Counter[int] = Counter()
    across: dict[str, int] = dict.fromkeys(parts, 0)
    without: dict[str, int] = dict.fromkeys(parts, 0)
    examples: dict[str, list[str]] = {part: [] for part in parts}
    for part, docs in parts.items():
        for doc in docs:
            layer = read(doc)
            without[part] += layer is None
            bounds = _bounds(doc)
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
    if spans:
        figures["lengths"] = {str(length): lengths[length] for length in sorted(lengths)}
        figures["across_sentences"] = {
            **across,
            "examples": [text for texts in examples.values() for text in texts[:EXAMPLES]],
        }
    return figures


def _bounds(doc: Doc) -> list[int]:
    """Return the first token of each sentence but the first."""
    return [i for i in range(1, len(doc)) if doc[i].is_sent_start]


def _duplicates(parts: Mapping[str, Sequence[Doc]]) -> dict[str, dict[str, int]]:
    first, *_ = parts
    seen = {part: Counter(map(_words, docs)) for part, docs in parts.items()}
    return {
        part: {
            **({} if part == first else {f"in {first}": _common(seen[part], seen[first])}),
            "twice": sum(count - 1 for count in seen[part].values()),
        }
        for part in parts
    }


def _common(ones: Counter[tuple[str, ...]], others: Iterable[tuple[str, ...]]) -> int:
    known = set(others)
    return sum(count for words, count in ones.items() if words in known)


def _words(doc: Doc) -> tuple[str, ...]:
    return tuple(token.text.lower() for token in doc)


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
