"""The recorded comparison of issue "Speed": our pipelines, spaCy's `ner`, Flair, bare PyTorch.

usage: python benchmarks/speed.py --psa MODEL --bilstm-crf MODEL --data TEST.spacy \\
           --train TRAIN.spacy --dev DEV.spacy --vectors FOLDER --work FOLDER \\
           [--config NAME=FILE.cfg ...] [--flair PYTHON] [--words N] [--output NAME]

spaCy's rows are its quickstart configs (`spacy init config -o accuracy` and `-o
efficiency`) with `ner` alone, accuracy with the same vectors in the place of
en_core_web_lg. They, and Flair's tagger, are trained for some hundred steps only: enough
that they predict entities, since speed hardly depends on which. What was made in --work
is used again. PYTHON is the interpreter of an environment with flair 0.15.1.
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
from bare import BareAnnotation, BareTraining

from spacy_psa.cli.benchmark import write
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.performance import sections
from spacy_psa.performance.pipelines import (
    Annotation,
    Training,
    named_rows,
    open_pipeline,
    read_words,
)
from spacy_psa.performance.timing import Row, Timing, pin_threads

QUICKSTART_STEPS = 400
NOTE = "spaCy's and Flair's rows: trained for some hundred steps, for speed only, not accuracy"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("psa", "bilstm-crf", "vectors"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("data", "train", "dev", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--config", action="append", default=[], metavar="NAME=FILE.cfg")
    parser.add_argument("--flair", metavar="PYTHON")
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--section",
        action="append",
        choices=["annotation", "training", "loading", "memory", "lengths", "labels"],
    )
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/speed"))
    return parser.parse_args()


def quickstart(kind: str, given: argparse.Namespace) -> str:
    """The folder of spaCy's `ner` by its quickstart config, trained now if it is not there."""
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


class Flair:
    """Flair's tagger, in its own environment, which stays open between runs."""

    def __init__(self, process: "subprocess.Popen[str]", name: str, task: str):
        self.process = process
        self.name = name
        self.task = task

    def run(self) -> Timing:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(self.task, file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith("{"):  # else it is Flair's own logging
                found = json.loads(line)
                return Timing(found["amount"], found["seconds"], found["cpu_seconds"])
        raise RuntimeError("flair_worker.py ended; its error is above")


@contextmanager
def flair(given: argparse.Namespace, sentences: list[list[str]], vocab: Any) -> Iterator[Any]:
    """The worker, given vectors and sentences."""
    folder = given.work / "flair"
    folder.mkdir(parents=True, exist_ok=True)
    keys = list(vocab.vectors.keys())
    data = vocab.vectors.data[[vocab.vectors.key2row[key] for key in keys]]
    words = numpy.array([vocab.strings[key] for key in keys])
    numpy.savez(folder / "vectors.npz", words=words, data=data)
    (folder / "annotate.json").write_text(json.dumps(sentences), encoding="utf8")
    docs = read_docbin(given.train, vocab)[:5000]
    train = [
        [[t.text for t in doc], [[e.start, e.end, e.label_] for e in doc.ents]] for doc in docs
    ]
    (folder / "train.json").write_text(json.dumps(train), encoding="utf8")
    worker = Path(__file__).with_name("flair_worker.py")
    with subprocess.Popen(
        [given.flair, str(worker), str(folder), str(given.threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.stdin.close()  # type: ignore[union-attr]


def measure(given: argparse.Namespace, worker: Any, nlps: dict[str, Any]) -> dict[str, Any]:
    """The sections that were asked for."""
    wanted = given.section or ["annotation", "training", "loading"]
    saved = {name: nlp_path for name, nlp_path in given.paths.items() if ".cfg" not in nlp_path}
    ours = {name: nlps[name] for name in ("bilstm_crf", "psa")}
    found: dict[str, Any] = {}
    rows: list[Row]
    if "annotation" in wanted:
        rows = [Annotation(name, nlp, given.sentences) for name, nlp in nlps.items()]
        rows += [
            BareAnnotation(f"{name}, bare PyTorch", nlp, given.sentences, nlp.batch_size)
            for name, nlp in ours.items()
        ]
        rows += [Flair(worker, "flair", "annotate")] if worker else []
        found["annotation"] = {
            "words": given.words,
            "rows": sections.timed(rows, given.repeats, tell),
        }
    if "lengths" in wanted:
        words = min(given.words, 20_000)
        found["lengths"] = sections.lengths(ours, given.sentences, words, given.repeats, tell)
    if "labels" in wanted:
        words = min(given.words, 20_000)
        found["labels"] = sections.labels(ours, given.sentences, words, given.repeats, tell)
    if "training" in wanted:
        loops = [
            Training(name, nlp, given.train, given.steps)
            for name, nlp in nlps.items()
            if not name.startswith(("spacy", "int8"))
        ]
        rows = list(loops)
        for loop in loops:
            if loop.name in ours:
                name = f"{loop.name}, bare PyTorch"
                rows.append(BareTraining(name, loop.nlp, loop.references, loop.batch))
        rows += [Flair(worker, "flair", f"train {given.steps}")] if worker else []
        timed = sections.timed(rows, given.repeats, tell)
        found["training"] = {"batch": 10, "steps": given.steps, "rows": timed}
    if "loading" in wanted:
        found["loading"] = sections.loading(saved, given.repeats, tell)
    if "memory" in wanted:
        of = {name: saved[name] for name in ours}
        found["memory"] = sections.memory(
            of, given.data, [200_000, 1_000_000], [25_000, 50_000, 100_000]
        )
    return found


def tell(name: str, number: int) -> None:
    print(f"round {number}: {name}", file=sys.stderr)


def main() -> None:
    given = arguments()
    given.paths = {
        "bilstm_crf": given.bilstm_crf,
        "psa": given.psa,
        "spacy-accuracy": quickstart("accuracy", given),
        "spacy-efficiency": quickstart("efficiency", given),
        **named_rows(given.config),
    }
    pin_threads(given.threads)
    given.sentences = read_words(given.data, given.words)
    nlps = {
        name: open_pipeline(path, given.train, given.vectors) for name, path in given.paths.items()
    }
    settings = {
        "threads": given.threads,
        "repeats": given.repeats,
        "note": NOTE,
        "flair": "0.15.1" if given.flair else None,
    }
    if given.flair:
        with flair(given, given.sentences, nlps["bilstm_crf"].vocab) as worker:
            found = measure(given, worker, nlps)
    else:
        found = measure(given, None, nlps)
    command = shlex.join(["python", *sys.argv])
    files = [given.data, given.train]
    write(sections.record(command, settings, given.paths, files, found), given.output)


if __name__ == "__main__":
    main()
