"""Measure words per second and memory of pipelines along an axis, compared with spaCy and Flair.

The axes, and what is taken of DATA at each point:

- sentence: docs of one sentence, of so many words
- document: docs of so many words, with sentences of 20 words; not for Flair, which has no docs
- labels: new weights for so many labels, sentences of 20 words
- batch: so many texts a batch, the sentences as they are
- threads: so many threads of torch
- processes: so many processes of `nlp.pipe`; not for Flair, which has none
- vocabulary: so many distinct words, sentences of 20 words

All rows run in turn, each run in a process of its own, which is forked when the pipelines are open
(see `benchmarks.apart`). So axes can be measured one by one. A ROW is NAME=MODEL, a pipeline or a
config, whose weights are random. For "labels", a `crf_ner` gets random weights, once as it is, and
once with `potentials = "transition"`; spaCy's `ner` and Flair get them for the labels.

Results (kind "figures"): `axis`, `repeats`, `price`, dollars for an hour of a core; `rows` {NAME:
{POINT: a summary of `performance.timing` in words per second, with `bytes`, the largest peak of
memory of the runs, less that of the open pipeline}}.
"""

import json
from collections.abc import Callable
from contextlib import nullcontext
from itertools import chain, cycle, islice
from math import inf
from pathlib import Path
from typing import Any, cast

import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from benchmarks.apart import Work, apart
from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.speed.side_by_side import flair
from benchmarks.worker import Worker
from spacy_psa.laboratory.performance.pipelines import (
    Sentences,
    named_rows,
    of_length,
    open_pipelines,
    read_words,
)
from spacy_psa.laboratory.performance.timing import Timing, summary

AXES: dict[str, tuple[int, ...]] = {
    "sentence": (10, 20, 40, 80, 160, 320, 640, 1280),
    "document": (20, 200, 2000, 10_000),
    "labels": (5, 18, 50, 100, 200, 400),
    "batch": (1, 4, 16, 64, 256),
    "threads": (1, 2),
    "processes": (1, 2),
    "vocabulary": (20, 200, 2000),
}
SENTENCE = 20
"""Words of a sentence where the axis is another."""
MOST = 100
"""Labels up to which a `crf_ner` is measured as it is. With 400, its weights need 1.5 GB."""


def task(axis: str, point: int, sentences: Sentences, words: int) -> dict[str, Any]:
    """The task of a row at a point: `texts`, and the setting of the axis."""
    if axis in ("sentence", "document"):
        return {"texts": of_length(sentences, point, max(words, point)), axis: point}
    if axis in ("batch", "threads", "processes"):
        return {"texts": sentences, axis: point}
    if axis == "vocabulary":
        distinct = list(dict.fromkeys(chain.from_iterable(sentences)))[:point]
        sentences = [list(islice(cycle(distinct), words))]
    return {"texts": of_length(sentences, SENTENCE, words), axis: point}


class Point:
    """A pipeline, or Flair, at a point of an axis.

    Args:
        measure: measures a task.
        task: the task.
    """

    def __init__(self, name: str, measure: Callable[[dict[str, Any]], dict[str, float]], task: Any):
        self.name, self.measure, self.task = name, measure, task
        self.bytes = 0

    def run(self) -> Timing:
        result = self.measure(self.task)
        self.bytes = max(self.bytes, int(result["bytes"]))
        return Timing(result["amount"], result["seconds"], result["cpu_seconds"])


class Pipeline:
    """A pipeline of spaCy that does tasks.

    Args:
        nlp: the pipeline.
        potentials: those of a `crf_ner` with new labels; None for its own.
    """

    def __init__(self, nlp: Language, potentials: str | None = None):
        self.nlp, self.potentials = nlp, potentials
        self.most: float = inf
        """The last point that it is measured at."""
        self.warm()

    def __call__(self, task: dict[str, Any]) -> dict[str, float]:
        workers = task.get("processes", 1)
        return apart(self.warm, lambda: self.prepare(task), workers)

    def warm(self) -> None:
        list(self.nlp.pipe(self.nlp.make_doc("Ada Lovelace met Babbage .") for _ in range(2)))

    def prepare(self, task: dict[str, Any]) -> Work:
        nlp, sentence = self.nlp, SENTENCE if "document" in task else 10**9
        docs = [
            Doc(nlp.vocab, words=words, sent_starts=[i % sentence == 0 for i in range(len(words))])
            for words in task["texts"]
        ]
        threads, workers = task.get("threads", 1), task.get("processes", 1)
        torch.set_num_threads(threads)
        if "labels" in task:
            self.relabel(task["labels"])
        settings = {"batch_size": task.get("batch"), "n_process": workers}
        return lambda: sum(len(doc) for doc in nlp.pipe(docs, **settings))

    def relabel(self, count: int) -> None:
        """Make new weights for so many labels in the last component."""
        nlp, (name, pipe) = self.nlp, cast(Any, self.nlp.pipeline[-1])
        if nlp.get_pipe_meta(name).factory == "ner":
            for i in range(count - len(pipe.labels)):
                pipe.add_label(f"L{i}")
            return
        config = {k: v for k, v in nlp.get_pipe_config(name).items() if k != "factory"}
        if self.potentials:
            config["model"]["potentials"] = self.potentials
        new: Any = nlp.create_pipe("crf_ner", config=config)
        docs = [nlp.make_doc("Ada Lovelace met Babbage .")]
        new.initialize(
            lambda: [Example(doc, doc) for doc in docs], labels=[*map(str, range(count))]
        )
        nlp.remove_pipe(name)
        nlp._components.append((name, new))


def systems(axis: str, nlps: dict[str, Language], worker: Worker | None) -> dict[str, Any]:
    """The functions that measure the tasks of an axis, by the name of the row."""
    result: dict[str, Any] = {}
    for name, nlp in nlps.items():
        result[name] = Pipeline(nlp)
        if axis == "labels" and "crf_ner" in nlp.pipe_factories.values():
            result[name].most = MOST
            result[f"{name}, transition"] = Pipeline(nlp, "transition")
    if worker and axis not in ("document", "processes"):
        result["flair"] = lambda task: worker.do(json.dumps(task))
    return result


def measure(
    axis: str, does: dict[str, Any], tasks: dict[int, dict[str, Any]], repeats: int
) -> dict[str, dict[str, Any]]:
    """The `rows` of an axis; every second round is in the opposite order."""
    points = [
        Point(f"{row} {at}", do, each)
        for row, do in does.items()
        for at, each in tasks.items()
        if at <= getattr(do, "most", inf)
    ]
    timings: dict[str, list[Timing]] = {point.name: [] for point in points}
    for number in range(repeats):
        for point in points[:: -1 if number % 2 else 1]:
            timings[point.name].append(point.run())
            print(axis, number, point.name, timings[point.name][-1], flush=True)
    rows: dict[str, dict[str, Any]] = {}
    for point in points:
        row, _, at = point.name.rpartition(" ")
        rows.setdefault(row, {})[at] = {**summary(timings[point.name]), "bytes": point.bytes}
    return rows


def main() -> None:
    options = script_parser(globals())
    options.add_argument("rows", nargs="+", metavar="NAME=MODEL")
    options.add_argument("--axis", action="append", choices=AXES, required=True)
    options.add_argument("--data", type=Path, required=True, help="a .spacy file to annotate")
    options.add_argument("--train", type=Path, required=True, help="to initialize a config with")
    options.add_argument("--vectors", required=True, metavar="MODEL", help="has the word vectors")
    options.add_argument("--work", type=Path, required=True, help="folder for Flair's files")
    options.add_argument("--flair", metavar="PYTHON", help="interpreter with flair 0.15.1")
    options.add_argument("--words", type=int, default=2000, help="to annotate in a run (2,000)")
    options.add_argument("--repeats", type=int, default=3, help="runs of each point (3)")
    options.add_argument("--price", type=float, default=0.05, help="dollars a core-hour (0.05)")
    given = options.parse_args()
    given.threads = 1
    torch.set_num_threads(1)
    sentences = read_words(given.data, given.words)
    known = read_words(given.data, 10 * given.words)
    nlps = open_pipelines(named_rows(given.rows), given.train, given.vectors)
    vocab = next(nlp.vocab for nlp in nlps.values() if len(nlp.vocab.vectors))
    with flair(given, sentences[:10], vocab) if given.flair else nullcontext() as worker:
        for axis in given.axis:
            texts = known if axis == "vocabulary" else sentences
            tasks = {point: task(axis, point, texts, given.words) for point in AXES[axis]}
            rows = measure(axis, systems(axis, nlps, worker), tasks, given.repeats)
            figures = {"axis": axis, "repeats": given.repeats, "price": given.price, "rows": rows}
            write_record(axis, "growth", figures, data=[given.data])


if __name__ == "__main__":
    main()
