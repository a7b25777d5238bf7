"""Time training and annotation on a GPU, compared with one core of the same machine's CPU.

Each row is a config with random weights on a real corpus. After `WARM` batches, it trains on
`STEPS` batches. Then it annotates `DOCS` docs of the development data three times, and the fastest
time counts. Each config and device has a process of its own. The processes of the GPU wait for
each other, so that only one is timed at a time. Those of the CPU have one thread each and run at
the same time. With `--times 8`, batches of training are eight times as large. `--without` names
what is switched off (`benchmarks/gpu/without.py`).

The record has `times`, `without` and `rows`: {config: {`corpus`, `gpu` and `cpu`: {`steps` per
second, `words` per second in training, `annotation`: words per second}}}, and the `source` of the
figures. Rows that were not finished in time are missing. The largest config is only timed on the
GPU.
"""

import argparse
import fcntl
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.loop import create_train_batches
from spacy.util import load_config, registry, resolve_dot_names
from thinc.api import get_current_ops

from benchmarks.gpu.timed import synchronize
from benchmarks.gpu.without import WITHOUT, switch_off
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import codecs_known
from spacy_psa.loading import use_device
from spacy_psa.scoring.provenance import provenance
from spacy_psa.training import ahead
from spacy_psa.training.config import initialize

DEVICES = ("gpu", "cpu")
ROWS = {
    "ner/best.cfg": ("conll2003", True, DEVICES),
    "ner/bilstm_crf.cfg": ("conll2003", True, DEVICES),
    "ner/psa.cfg": ("conll2003", True, DEVICES),
    "ner/tener.cfg": ("conll2003", True, DEVICES),
    "parser/best.cfg": ("wsj_trees", True, DEVICES),
    "parser/factored.cfg": ("wsj_trees", False, ("gpu",)),
}
"""The corpus of each config, whether it reads word vectors, and its devices."""
WARM, STEPS, DOCS, RUNS = 10, 30, 400, 3


class Training(NamedTuple):
    """A pipeline with random weights, and what it is trained on."""

    nlp: Language
    settings: dict[str, Any]
    batches: list[list[Example]]
    dev: Callable[[Language], Iterable[Example]]


def untrained(config: str, corpus: str, vectors: bool, gpu: int, times: int = 1) -> Language:
    """Initialize the pipeline of a config on a device, for batches some times as large."""
    use_device(gpu)
    data = Path("corpus", corpus)
    paths = {"train": data / "train.spacy", "dev": data / "dev.spacy"}
    overrides: dict[str, Any] = {f"paths.{name}": str(path) for name, path in paths.items()}
    overrides["paths.vectors"] = "corpus/conll2003/vectors" if vectors else None
    given = load_config(Path("configs", config), overrides=overrides, interpolate=False)
    given["training"]["batcher"]["size"] *= times
    if "buffer" in given["training"]["batcher"]:
        given["training"]["batcher"]["buffer"] *= times
    return initialize(Path(config), given, gpu)


def training_of(config: str, gpu: int, times: int, steps: int) -> Training:
    """Make the pipeline of a row of `ROWS`, and its first batches."""
    corpus, vectors, _ = ROWS[config]
    nlp = untrained(config, corpus, vectors, gpu, times)
    whole = nlp.config.interpolate()
    settings = registry.resolve(whole["training"], schema=ConfigSchemaTraining)
    train, dev = resolve_dot_names(whole, [settings["train_corpus"], settings["dev_corpus"]])
    with codecs_known():
        made = create_train_batches(nlp, train, settings["batcher"], 0)
        batches = [batch for _, batch in itertools.islice(made, steps)]
    return Training(nlp, settings, batches, dev)


def make_steps(training: Training, batches: list[list[Example]]) -> None:
    """Make training steps as `spacy_psa.training.loop` does."""
    nlp, settings = training.nlp, training.settings
    on_gpu = get_current_ops().device_type == "gpu"
    thread = ahead.Ahead(nlp, 1, [], ahead.STEPS) if on_gpu and ahead.STEPS else None
    for [batch] in (thread or iter)(iter([[batch] for batch in batches])):
        losses: dict[str, float] = {}
        for prepared in thread.ready if thread else ():
            prepared.update(nlp, settings["dropout"], losses, ())
        if thread is None:
            nlp.update(batch, drop=settings["dropout"], losses=losses, sgd=False)  # type: ignore[arg-type]  # as in spaCy's own loop
        for _, pipe in nlp.pipeline:
            pipe.finish_update(settings["optimizer"])  # type: ignore[attr-defined]
        settings["optimizer"].step_schedules()


def measure(config: str, gpu: int, lock: Path, times: int = 1) -> dict[str, float]:
    """Time a config on a device."""
    training = training_of(config, gpu, times, WARM + STEPS)
    nlp, batches = training.nlp, training.batches
    with codecs_known():
        docs = [eg.reference for eg in itertools.islice(training.dev(nlp), DOCS)]

    def seconds(some: list[list[Example]]) -> float:
        begun = synchronize()
        make_steps(training, some)
        return synchronize() - begun

    def annotation() -> float:
        fresh = [Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs]
        begun = synchronize()
        for _ in nlp.pipe(fresh):
            pass
        return synchronize() - begun

    with lock.open("w") as file:
        if gpu >= 0:
            fcntl.flock(file, fcntl.LOCK_EX)
        seconds(batches[:WARM])
        trained = seconds(batches[WARM:])
        annotated = min(annotation() for _ in range(RUNS))
    words = sum(len(eg.reference) for batch in batches[WARM:] for eg in batch)
    rates = {"steps": len(batches[WARM:]) / trained, "words": words / trained}
    return {**rates, "annotation": sum(map(len, docs)) / annotated}


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    options.add_argument("--minutes", type=float, default=2, help="time for all rows (2)")
    options.add_argument("--configs", nargs="+", default=[*ROWS], choices=[*ROWS])
    options.add_argument("--times", type=int, default=1, help="size of batches (1)")
    options.add_argument("--without", nargs="*", default=[], choices=[*WITHOUT])
    options.add_argument("--gpu-only", action=argparse.BooleanOptionalAction, default=False)
    options.add_argument("--gpu-id", type=int, default=0, help="number of the GPU (0); -1: the CPU")
    options.add_argument("--row", nargs=2, metavar=("CONFIG", "DEVICE"), help="of one process")
    given = options.parse_args()
    lock = given.out.with_suffix(".lock")
    numbers = {"gpu": given.gpu_id, "cpu": -1}
    if given.row:
        config, device = given.row
        if device == "gpu":
            switch_off(given.without)
        print(json.dumps(measure(config, numbers[device], lock, given.times)))
        return
    end = time.monotonic() + 60 * given.minutes
    command = [sys.executable, "-m", "benchmarks.gpu.speed", str(given.out)]
    command += ["--times", str(given.times), "--gpu-id", str(given.gpu_id)]
    command += [*(["--without", *given.without] if given.without else ()), "--row"]
    running = {
        (config, device): subprocess.Popen([*command, config, device], stdout=subprocess.PIPE)
        for config in given.configs
        for device in (("gpu",) if given.gpu_only else ROWS[config][2])
    }
    rows: dict[str, dict[str, Any]] = {}
    for (config, device), process in running.items():
        try:
            printed, _ = process.communicate(timeout=max(0.1, end - time.monotonic()))
            row = rows.setdefault(config, {"corpus": ROWS[config][0]})
            row[device] = json.loads(printed.splitlines()[-1])
        except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
            process.kill()
            print(f"{config}, {device}: not timed ({type(error).__name__})", flush=True)
    with atomic_path(given.out) as temporary:
        how = {"times": given.times, "without": given.without}
        result = {"rows": rows, **how, "source": provenance()}
        temporary.write_text(json.dumps(result, indent=1), encoding="utf8")
    print(json.dumps(rows), flush=True)
    if not any(device in row for row in rows.values() for device in numbers):
        sys.exit("nothing was timed: allow more --minutes, or fewer --configs")


if __name__ == "__main__":
    main()
