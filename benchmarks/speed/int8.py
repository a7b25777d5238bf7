"""Compare the speed, loading time and scores of weights in int8 with those in float32.

Each ROW is NAME=MODEL, where MODEL is a trained pipeline or a config. A config is initialized with
TRAIN and not trained, because the time does not depend on the weights. Both forms annotate the same
documents of DATA in turn, in the opposite order in every second round. Ratios are between
neighbouring runs, so that other load on the machine affects both.

Results (kind "figures"): `documents`, `words`, `threads`, `repeats`; `rows`, {NAME: {"float32",
"int8": a summary of `performance.timing` in words per second; "loads": {"float32", "int8"}, the
same in `spacy.load` per second; "ratio": the median of int8 / float32 in words per second of
processor time; "loading_ratio": the median of int8 / float32 in loading time; "int8_weights" and
"float32_weights": their numbers; "scores": null for a config, else {"float32", "int8"}: the scores
of `nlp.evaluate` that are numbers}}.
"""

import argparse
import tempfile
import warnings
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.worker import DocRow, annotate, doc_maker, faster, tokens
from spacy_psa.bridge.shim import TorchShim
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.laboratory.performance.pipelines import named_rows, open_pipeline
from spacy_psa.laboratory.performance.timing import (
    Timing,
    alternate,
    pin_threads,
    stopwatch,
    summary,
)
from spacy_psa.scoring.result import read_examples


def shims(nlp: Language) -> list[TorchShim]:
    """The torch modules of spacy-psa in a pipeline, each once."""
    once = {
        id(shim): shim
        for _, pipe in nlp.pipeline
        for node in getattr(getattr(pipe, "model", None), "walk", list)()
        for shim in node.shims
        if isinstance(shim, TorchShim)
    }
    return list(once.values())


def weights(nlp: Language) -> dict[str, int]:
    """How many weights are in int8, and how many are not."""
    tensors = [b for s in shims(nlp) for b in s.module.buffers() if b.dtype == torch.int8]
    others = [p for s in shims(nlp) for p in s.module.parameters()]
    return {
        "int8_weights": sum(t.numel() for t in tensors),
        "float32_weights": sum(p.numel() for p in others),
    }


class Loading:
    """`spacy.load`."""

    def __init__(self, name: str, path: Path):
        self.name, self.path = name, path

    def run(self) -> Timing:
        with stopwatch(1) as timings:
            spacy.load(self.path)
        return timings[0]


def scores(nlp: Language, data: Path, documents: int) -> dict[str, float]:
    """All scores that are numbers, but for those of tokenization and speed."""
    examples = read_examples(nlp, data)[:documents]
    return {
        key: round(value, 6)
        for key, value in nlp.evaluate(examples).items()
        if isinstance(value, float) and not key.startswith(("token", "speed"))
    }


def measure(path: str, given: argparse.Namespace) -> dict[str, Any]:
    """Measure one row."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {form: Path(folder) / form for form in ("float32", "int8")}
        nlp = open_pipeline(path, given.train, None)
        nlp.to_disk(paths["float32"])
        for shim in shims(nlp):
            shim.quantize()
        nlp.to_disk(paths["int8"])
        row: dict[str, Any] = weights(nlp)
        nlps = {form: spacy.load(place) for form, place in paths.items()}
        docs = islice(read_docbin(given.data, nlp.vocab), given.documents)
        texts = [[token.text for token in doc] for doc in docs]
        rows = [
            DocRow(form, doc_maker(each, texts), partial(annotate, each), tokens)
            for form, each in nlps.items()
        ]
        timed = alternate(rows, given.repeats)
        loads = alternate([Loading(form, place) for form, place in paths.items()], given.repeats)
    row |= {form: summary(timings) for form, timings in timed.items()}
    row["ratio"] = faster(timed["int8"], timed["float32"])
    row["loading_ratio"] = faster(loads["float32"], loads["int8"])
    row["loads"] = {form: summary(timings) for form, timings in loads.items()}
    row["scores"] = None
    if not path.endswith(".cfg"):
        row["scores"] = {f: scores(each, given.data, given.documents) for f, each in nlps.items()}
    return row


def main() -> None:
    warnings.simplefilter("ignore")
    options = script_parser(globals(), "DATA.spacy", "OUT.json")
    options.add_argument("rows", nargs="+", metavar="NAME=MODEL", help="a pipeline, or a config")
    options.add_argument("--train", type=Path, help="training data to initialize a config with")
    options.add_argument("--documents", type=int, default=10**9, help="documents of DATA (all)")
    options.add_argument("--threads", type=int, default=1, help="threads and processors (1)")
    options.add_argument("--repeats", type=int, default=5, help="runs of each (5)")
    given = options.parse_args()
    pin_threads(given.threads)
    rows = {}
    for name, path in named_rows(given.rows).items():
        row = rows[name] = measure(path, given)
        before, after = (row[form]["per_cpu_second"]["median"] for form in ("float32", "int8"))
        print(f"{name}: {before:,.0f} words/s, int8 {after:,.0f}, {row['ratio']:.2f} ×", flush=True)
        print(f"{name}: loading {row['loading_ratio']:.2f} × the time", flush=True)
    texts = list(islice(read_docbin(given.data, spacy.blank("en").vocab), given.documents))
    counts = {"documents": len(texts), "words": sum(map(len, texts))}
    figures = {**counts, "threads": given.threads, "repeats": given.repeats, "rows": rows}
    write_record(given.out, "speed", figures, data=[given.data])


if __name__ == "__main__":
    main()
