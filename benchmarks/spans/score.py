"""Score a pipeline on nested spans: by depth and by genre, with its speed and memory.

Writes JSON: {part: {`all`, `flat`, `nested`, `depths`, `genres`, `words`}} for each part of the
corpus that is named, `thresholds`, `speed` (words a second of processor time, on the last part,
without its first pass) and `peak_bytes` (of this process, which has only loaded and annotated).

The thresholds of spaCy's `spancat` and `span_finder` are those with the highest F1 on the
development data, of `GRID`; `thresholds` has them.

A span is at depth 1 if it is in no other span of its document, at depth 2 if it is in one, and so
on. `flat` are spans at depth 1, `nested` all others. The precision of a depth is that of the spans
which have this depth among the predicted ones, its recall that of the spans which have it among the
gold ones. In both, a span is right if it is anywhere among those of the other side.
"""

import json
import resource
import time
from collections import Counter
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.script import script_parser
from benchmarks.spans.systems import KEY
from spacy_psa.scoring.result import read_examples

Span = tuple[int, int, str]
"""First character, character after the last one, and label."""
DEEPEST = 4
"""Spans that are deeper count as spans of this depth."""
GRID = {"span_finder": (0.5, 0.4, 0.3, 0.2), "spancat": (0.5, 0.4, 0.3, 0.2, 0.1)}
"""Thresholds; 0.5 is spaCy's default."""


def depths(spans: Iterable[Span]) -> dict[Span, int]:
    """The depth of each span among others, from 1; of two with equal bounds, one is the outer."""
    levels: dict[Span, int] = {}
    above: list[Span] = []
    for span in sorted(set(spans), key=lambda span: (span[0], -span[1], span[2])):
        above = [each for each in above if each[1] > span[0]]
        inside = sum(each[1] >= span[1] for each in above)
        levels[span] = min(inside + 1, DEEPEST)
        above.append(span)
    return levels


class Counts:
    """Right, predicted and gold spans of several groups."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.right_gold: Counter[str] = Counter()
        self.predicted: Counter[str] = Counter()
        self.gold: Counter[str] = Counter()

    def add(self, gold: dict[Span, int], predicted: dict[Span, int], genre: str) -> None:
        """Count the spans of a document, whose depths are given."""
        for own, others, totals, right in (
            (predicted, gold, self.predicted, self.right),
            (gold, predicted, self.gold, self.right_gold),
        ):
            for span, depth in own.items():
                groups = ["all", f"depth {depth}", "nested" if depth > 1 else "flat"]
                groups += [f"genre {genre}"] * bool(genre)
                totals.update(groups)
                right.update(groups if span in others else ())

    def figures(self) -> dict[str, Any]:
        """The precision, recall and F1 of each group."""
        scores = {group: self.prf(group) for group in sorted({*self.gold, *self.predicted})}
        split = {
            f"{kind}s": {
                group.removeprefix(f"{kind} "): scores.pop(group)
                for group in list(scores)
                if group.startswith(f"{kind} ")
            }
            for kind in ("depth", "genre")
        }
        return {**scores, **split}

    def prf(self, group: str) -> dict[str, float]:
        precision = self.right[group] / max(1, self.predicted[group])
        recall = self.right_gold[group] / max(1, self.gold[group])
        f = 2 * precision * recall / max(1e-9, precision + recall)
        return {"p": precision, "r": recall, "f": f, "gold": self.gold[group]}


def read_spans(doc: Doc) -> list[Span]:
    """The spans of a document, by characters: a prediction may have other tokens."""
    return [(span.start_char, span.end_char, span.label_) for span in doc.spans.get(KEY, ())]


def choose_thresholds(nlp: Language, data: Path) -> dict[str, float]:
    """Set the thresholds of spaCy's components to those with the highest F1, and return them."""
    names = [name for name in GRID if name in nlp.pipe_names]
    if not names:
        return {}

    def set_to(thresholds: tuple[float, ...]) -> None:
        for name, threshold in zip(names, thresholds, strict=True):
            pipe: Any = nlp.get_pipe(name)
            pipe.cfg["threshold"] = threshold

    examples = read_examples(nlp, data)
    gold = sum(len(read_spans(example.reference)) for example in examples)
    f1: dict[tuple[float, ...], float] = {}
    for first in product(*(GRID[name] for name in names[:-1])):
        set_to((*first, min(GRID["spancat"])))
        predicted, right = Counter[float](), Counter[float]()
        docs = [example.predicted.copy() for example in examples]
        for doc, example in zip(nlp.pipe(docs), examples, strict=True):
            known = set(read_spans(example.reference))
            scores = doc.spans[KEY].attrs["scores"] if doc.spans[KEY] else ()
            for span, score in zip(read_spans(doc), scores, strict=True):
                above = [threshold for threshold in GRID["spancat"] if score >= threshold]
                predicted.update(above)
                right.update(above if span in known else ())
        for last in GRID["spancat"]:
            f1[(*first, last)] = 2 * right[last] / (predicted[last] + gold)
    best = max(f1, key=f1.__getitem__)
    set_to(best)
    return dict(zip(names, best, strict=True))


def score(model: Path, corpus: Path, parts: list[str]) -> dict[str, Any]:
    """Annotate parts of a corpus and score them."""
    nlp = spacy.load(model)
    results: dict[str, Any] = {"thresholds": choose_thresholds(nlp, corpus / "dev.spacy")}
    for part in parts:
        examples = read_examples(nlp, corpus / f"{part}.spacy")
        counts, words = Counts(), sum(len(example.reference) for example in examples)
        for _ in range(2):  # the second pass is timed
            docs = [example.predicted.copy() for example in examples]
            started = time.process_time()
            annotated = list(nlp.pipe(docs))
            seconds = time.process_time() - started
        for doc, example in zip(annotated, examples):
            genre = str(example.reference.user_data.get("genre", ""))
            counts.add(depths(read_spans(example.reference)), depths(read_spans(doc)), genre)
        results[part] = {**counts.figures(), "words": words}
        results["speed"] = words / seconds
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**results, "peak_bytes": peak}


def main() -> None:
    options = script_parser(globals(), "MODEL", "CORPUS")
    options.add_argument("--parts", nargs="+", default=["dev", "test", "test2"])
    options.add_argument("--output", type=Path, required=True, help="JSON file to write")
    given = options.parse_args()
    result = score(given.model, given.corpus, given.parts)
    given.output.write_text(json.dumps(result, indent=2), encoding="utf8")


if __name__ == "__main__":
    main()
