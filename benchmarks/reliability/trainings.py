"""Attack trainings and the memory of `annotate`, and note what happens.

A small `crf_ner` is trained by `spacy-psa train`, in processes of their own.

- `differing`: the files that differ from those of an undisturbed training, but for meta.json, which
  has the time, of a training under SIGSTOP and SIGCONT (`stopped`), of one whose clock jumps by a
  day and back at each look (`clock`), and for each PYTHONHASHSEED from 1 to 4 (`hash 1` …); that of
  the undisturbed one is 0. `files` is the number of compared files.
- `refused`: the error of a second training in the same folder (`two`), and, after the first was
  killed, of `--resume` with another setting (`config`) and another development set (`dev`).
  `kept` tells whether the files in the folder are the same after both.
- `memory`: the exit code, the last line of the errors, and the number of files left, of an
  annotation in so many bytes of address space, by the number of words.
- `labels`: for each number of labels, with `potentials = "transition"`, seconds of processor time
  for a batch of 16 texts in training and in annotation, the number of predicted spans, and whether
  the saved pipeline predicts the same.

Results (kind "figures"): these.
"""

import hashlib
import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.child_processes import child_command, child_environment

CLOCK = """import time
from itertools import count
now, looks = time.time, count()
time.time = lambda: now() + 86400 * (next(looks) % 2)
"""
"""A sitecustomize.py, which Python imports at its start."""
SHORT = ("--training.max_steps", "24")
MODEL = {"@architectures": "spacy-psa.CRF.v1", "potentials": "transition"}


def blank(labels: int, model: dict[str, Any]) -> tuple[Language, list[Example]]:
    """An untrained `crf_ner` with some labels, and texts with them."""
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_ner", config={"model": {**model, "tok2vec": {"encode": {"hidden": 20}}}})
    texts = [f"Word{i} met Ada in Leeds" for i in range(max(labels, 16))]
    marks = [[(0, text.index(" "), f"L{i % labels}")] for i, text in enumerate(texts)]
    pairs = zip(texts, marks, strict=True)
    return nlp, [Example.from_dict(nlp.make_doc(t), {"entities": ents}) for t, ents in pairs]


class Trainings:
    """Trainings in folders of their own, all of one config."""

    def __init__(self, folder: Path):
        self.folder = folder
        nlp, examples = blank(3, {})
        nlp.config.to_disk(folder / "config.cfg")
        for name, docs in {"train": examples, "dev": examples[:8], "other": examples[8:]}.items():
            DocBin(docs=[each.reference for each in docs]).to_disk(folder / f"{name}.spacy")

    def start(self, name: str, *settings: str, dev: str = "dev", **variables: str) -> Any:
        """Start a training."""
        options = ("--output", name, "--save-every", "2", "--training.eval_frequency", "8")
        paths = ("--paths.train", "train.spacy", "--paths.dev", f"{dev}.spacy")
        return subprocess.Popen(
            child_command("spacy_psa", "train", "config.cfg", *options, *paths, *settings),
            env=child_environment(**{"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **variables}),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, name: str, **variables: str) -> dict[str, str]:
        """Train to the end, and return the checksums of the files."""
        _, errors = self.start(name, *SHORT, **variables).communicate()
        assert (self.folder / name / "model-last").exists(), errors
        return self.sums(name)

    def begun(self, name: str, *settings: str) -> Any:
        """Start a training, and wait for its first checkpoint."""
        process = self.start(name, *settings)
        while process.poll() is None and not [*(self.folder / name).glob("checkpoints/step*4.pt")]:
            time.sleep(0.01)
        return process

    def stopped(self, seconds: float) -> dict[str, str]:
        """Stop a training for some seconds in its middle."""
        process = self.begun("stopped", *SHORT)
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)
        process.communicate()
        return self.sums("stopped")

    def refused(self) -> dict[str, Any]:
        """Start trainings that cannot be started in a folder."""
        long = ("--training.max_steps", "100000", "--training.patience", "0")
        first = self.begun("two", *long)
        errors = {"two": self.error("two", *long)}
        first.kill()
        first.communicate()
        before = self.sums("two")
        resume = (*long, "--resume")
        errors["config"] = self.error("two", *resume, "--training.dropout", "0.3")
        errors["dev"] = self.error("two", *resume, dev="other")
        return {**errors, "kept": before == self.sums("two")}

    def error(self, *arguments: str, **options: str) -> str:
        _, errors = self.start(*arguments, **options).communicate()
        return str(errors.strip().splitlines()[-1])

    def sums(self, name: str) -> dict[str, str]:
        """The checksums of the models and checkpoints of a training."""
        files = (path for path in sorted((self.folder / name).rglob("*")) if path.is_file())
        return {
            str(path.relative_to(self.folder / name)): hashlib.md5(path.read_bytes()).hexdigest()
            for path in files
            if path.name not in ("meta.json", ".lock")
        }


def trainings(folder: Path) -> dict[str, Any]:
    """Attack trainings."""
    here = Trainings(folder)
    (folder / "sitecustomize.py").write_text(CLOCK)
    whole = here.run("whole")
    others = {"stopped": here.stopped(3)}
    path = os.pathsep.join([str(folder), child_environment()["PYTHONPATH"]])
    others["clock"] = here.run("clock", PYTHONPATH=path)
    for seed in "1234":
        others[f"hash {seed}"] = here.run(f"hash {seed}", PYTHONHASHSEED=seed)
    differing = {
        name: sorted(file for file in whole.keys() | sums if whole.get(file) != sums.get(file))
        for name, sums in others.items()
    }
    return {"files": len(whole), "differing": differing, "refused": here.refused()}


def memory(folder: Path) -> dict[str, dict[str, Any]]:
    """Annotate texts in little address space."""
    nlp, examples = blank(3, {})
    nlp.initialize(lambda: examples)
    nlp.to_disk(folder / "model")
    outcomes: dict[str, dict[str, Any]] = {}
    for size, words in ((2**30, 60), (5 * 2**28, 60), (5 * 2**28, 150_000)):
        (folder / "in.txt").write_text("Ada met Ada " * (words // 3) + "\n")
        out = folder / "out" / str(len(outcomes))
        out.mkdir(parents=True)
        limit: Callable[[], None] = partial(resource.setrlimit, resource.RLIMIT_AS, (size, size))
        done = subprocess.run(
            child_command("spacy_psa", "annotate", "model", "in.txt", str(out / "out.jsonl")),
            env=child_environment(OMP_NUM_THREADS="1"),
            cwd=folder,
            preexec_fn=limit,
            capture_output=True,
            text=True,
        )
        last = done.stderr.strip().splitlines()[-1] if done.returncode else ""
        left = len([*out.iterdir()])
        outcomes[f"{size}, {words}"] = {"code": done.returncode, "error": last, "files": left}
    return outcomes


def labels(folder: Path, count: int) -> dict[str, Any]:
    """Train a batch with many labels, annotate, save and annotate again."""
    nlp, examples = blank(count, MODEL)
    optimizer = nlp.initialize(lambda: examples)
    nlp.update(examples[:16], sgd=optimizer)  # the first step may compile kernels
    seconds = []
    texts = [example.text for example in examples[:16]]
    for work in (lambda: nlp.update(examples[:16], sgd=optimizer), lambda: [*nlp.pipe(texts)]):
        start = time.process_time()
        work()
        seconds.append(round(time.process_time() - start, 2))
    nlp.to_disk(folder / str(count))
    again = spacy.load(folder / str(count))
    predicted = [
        [(ent.start, ent.end, ent.label_) for doc in each.pipe(texts) for ent in doc.ents]
        for each in (nlp, again)
    ]
    same = predicted[0] == predicted[1]
    return {
        "update": seconds[0], "annotate": seconds[1], "same": same, "spans": len(predicted[0])
    }  # fmt: skip


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    given = options.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        figures: dict[str, Any] = {"labels": {}, "memory": memory(folder)}
        print(json.dumps(figures, indent=1), flush=True)
        for count in (100, 400):
            figures["labels"][str(count)] = labels(folder, count)
            print(json.dumps(figures["labels"], indent=1), flush=True)
        figures |= trainings(folder)
    print(json.dumps(figures, indent=1))
    write_record(given.out, "reliability", figures)


if __name__ == "__main__":
    main()
