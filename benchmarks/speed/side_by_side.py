"""Time our pipelines, spaCy's `ner`, Flair and bare PyTorch side by side.

The rows "spacy-accuracy" and "spacy-efficiency" are spaCy's quickstart configs (`spacy init config
-o accuracy` and `-o efficiency`) with only `ner`; the first has the same vectors as ours instead of
those of en_core_web_lg. These two, and Flair's tagger, are only trained for some hundred steps.
That is enough to predict entities, and their speed hardly depends on which. Models in --work are
used again. `--config` adds a row with a pipeline or a config, and may be repeated.

Writes benchmarks/EXPERIMENT/results/NAME.json, a record of the kind "speed", and, if there is
something to draw, the picture benchmarks/EXPERIMENT/NAME.png.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy

from benchmarks.record import FOLDER, save_record
from benchmarks.script import script_parser
from benchmarks.speed.bare import BareAnnotation, BareTraining
from benchmarks.worker import Worker, WorkerRow
from benchmarks.wrap import wrap
from spacy_psa.analysis.figures import check_matplotlib
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.laboratory.performance import sections
from spacy_psa.laboratory.performance.pipelines import (
    Annotation,
    Training,
    named_rows,
    open_pipelines,
    read_words,
)
from spacy_psa.laboratory.performance.tables import draw, markdown
from spacy_psa.laboratory.performance.timing import Row, pin_threads
from spacy_psa.scoring.provenance import command

QUICKSTART_STEPS = 400
NOTE = "spaCy's and Flair's rows: trained for some hundred steps, for speed only, not accuracy"
SECTIONS = ["annotation", "training", "loading", "memory"]


def quickstart(kind: str, given: argparse.Namespace) -> str:
    """The folder of spaCy's `ner` by its quickstart config, which is trained if it is missing."""
    target = given.work / f"spacy-{kind}"
    if not (target / "model-last").exists():
        given.work.mkdir(parents=True, exist_ok=True)
        config = given.work / f"{kind}.cfg"
        spacy = [sys.executable, "-m", "spacy"]
        subprocess.run(
            [*spacy, "init", "config", "-F", "-l", "en", "-p", "ner", "-o", kind, str(config)],
            check=True,
        )
        subprocess.run(
            [
                *spacy, "train", str(config), "-o", str(target),
                "--paths.train", str(given.train), "--paths.dev", str(given.dev),
                "--paths.vectors", given.vectors if kind == "accuracy" else "",
                "--initialize.vectors", given.vectors if kind == "accuracy" else "null",
                "--training.max_steps", str(QUICKSTART_STEPS),
                "--training.eval_frequency", str(QUICKSTART_STEPS),
                "--corpora.dev.limit", "100",
            ],
            check=True,
        )  # fmt: skip
    return str(target / "model-last")


@contextmanager
def flair(given: argparse.Namespace, sentences: list[list[str]], vocab: Any) -> Iterator[Worker]:
    """A worker that runs flair_worker.py on our vectors and sentences."""
    folder = given.work / "flair"
    folder.mkdir(parents=True, exist_ok=True)
    keys = list(vocab.vectors.keys())
    data = vocab.vectors.data[[vocab.vectors.key2row[key] for key in keys]]
    words = numpy.array([vocab.strings[key] for key in keys])
    numpy.savez(folder / "vectors.npz", words=words, data=data)
    (folder / "annotate.json").write_text(json.dumps(sentences), encoding="utf8")
    docs = read_docbin(given.train, vocab)[:5000]
    ents = [[[ent.start, ent.end, ent.label_] for ent in doc.ents] for doc in docs]
    train = [([token.text for token in doc], each) for doc, each in zip(docs, ents)]
    (folder / "train.json").write_text(json.dumps(train), encoding="utf8")
    worker = [given.flair, "-m", "benchmarks.speed.flair_worker", str(folder), str(given.threads)]
    with Worker(worker) as process:
        yield process


def measure(
    given: argparse.Namespace, flair: Worker | None, nlps: dict[str, Any]
) -> dict[str, Any]:
    """The sections that were chosen."""
    wanted = given.section or ["annotation", "training", "loading"]
    saved = {name: path for name, path in given.paths.items() if ".cfg" not in path}
    ours = {name: nlps[name] for name in ("bilstm_crf", "psa")}
    timed: dict[str, Any] = {}
    rows: list[Row]
    if "annotation" in wanted:
        rows = [Annotation(name, nlp, given.sentences) for name, nlp in nlps.items()]
        for name, nlp in ours.items():
            row = f"{name}, bare PyTorch"
            rows.append(BareAnnotation(row, nlp, given.sentences, nlp.batch_size))
        rows += [WorkerRow(flair, "flair", "annotate")] if flair else []
        summaries = sections.timed(rows, given.repeats, progress)
        timed["annotation"] = {"words": given.words, "rows": summaries}
    if "training" in wanted:
        trained = [name for name in nlps if not name.startswith(("spacy", "int8"))]
        loops = [Training(name, nlps[name], given.train, given.steps) for name in trained]
        rows = list(loops)
        for loop in loops:
            if loop.name in ours:
                name = f"{loop.name}, bare PyTorch"
                rows.append(BareTraining(name, loop.nlp, loop.references, loop.batch))
        rows += [WorkerRow(flair, "flair", f"train {given.steps}")] if flair else []
        summaries = sections.timed(rows, given.repeats, progress)
        timed["training"] = {"batch": 10, "steps": given.steps, "rows": summaries}
    if "loading" in wanted:
        timed["loading"] = sections.loading(saved, given.repeats, progress)
    if "memory" in wanted:
        of = {name: saved[name] for name in ours}
        words_of = [200_000, 1_000_000], [25_000, 50_000, 100_000]
        timed["memory"] = sections.memory(of, given.data, *words_of)
    return timed


def progress(name: str, number: int) -> None:
    print(f"round {number}: {name}", file=sys.stderr)


def main() -> None:
    check_matplotlib()
    options = script_parser(globals())
    options.add_argument("experiment", choices=["speed", "memory"], help="folder below benchmarks")
    options.add_argument("name", metavar="NAME", help="name of the record")
    options.add_argument("--psa", required=True, metavar="MODEL")
    options.add_argument("--bilstm-crf", required=True, metavar="MODEL")
    options.add_argument("--vectors", required=True, metavar="MODEL", help="has the word vectors")
    options.add_argument("--data", type=Path, required=True, help="a .spacy file to annotate")
    options.add_argument("--train", type=Path, required=True, help="a .spacy file to train on")
    options.add_argument("--dev", type=Path, required=True, help="a .spacy file")
    options.add_argument("--work", type=Path, required=True, help="folder for spaCy's models")
    options.add_argument("--config", action="append", default=[], metavar="NAME=PATH", help="a row")
    options.add_argument("--flair", metavar="PYTHON", help="interpreter with flair 0.15.1")
    options.add_argument("--words", type=int, default=20_000, help="to annotate in a run (20,000)")
    options.add_argument("--steps", type=int, default=20, help="training steps in a run (20)")
    options.add_argument("--repeats", type=int, default=5, help="runs of each row (5)")
    options.add_argument("--threads", type=int, default=1, help="threads and processors (1)")
    options.add_argument("--section", action="append", choices=SECTIONS, help="may be repeated")
    given = options.parse_args()
    given.paths = {
        "bilstm_crf": given.bilstm_crf,
        "psa": given.psa,
        "spacy-accuracy": quickstart("accuracy", given),
        "spacy-efficiency": quickstart("efficiency", given),
        **named_rows(given.config),
    }
    pin_threads(given.threads)
    given.sentences = read_words(given.data, given.words)
    nlps = open_pipelines(given.paths, given.train, given.vectors)
    settings = {"threads": given.threads, "repeats": given.repeats, "note": NOTE}
    settings["flair"] = "0.15.1" if given.flair else None
    with (
        flair(given, given.sentences, nlps["bilstm_crf"].vocab) if given.flair else nullcontext()
    ) as worker:
        timed = measure(given, worker, nlps)
    files = [given.data, given.train]
    product = sections.record(command(), settings, given.paths, files, timed)
    print(markdown(product))
    record = wrap(product, given.experiment, given.name)
    save_record(record)
    draw(product, FOLDER / given.experiment / f"{given.name}.png")


if __name__ == "__main__":
    main()
