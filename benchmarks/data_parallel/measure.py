"""Compare one training in several processes with the same training in one process.

Sections:

- `speed`: trains `--steps` steps in one process, in `--processes` processes, and in as many
  unconnected trainings, in turn, `--rounds` times, with one thread per process. The unconnected
  trainings show how much the cores allow. The first `--warm` steps do not count, and only step 0 is
  evaluated.
- `losses`: trains 21 steps without dropout, in one process with batches of `--processes` times the
  size, and in several processes with batches of the size in the config. Compares the losses.
- `death`: kills the last process `--rounds` times in the middle of a training, and measures how
  long the first process continues.

Results (kind "figures"): `processes`; `batch`, sentences of one process in a step; and by section:
`speed` with `steps` and with the sentences per second of all processes in each round, `one`,
`several` and `apart`; `losses` with `one` and `several`, the loss of each step, and `difference`,
the largest relative one; `death` with `seconds` until the first process ended, `codes` of torchrun,
and its message `said`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import srsly
from spacy.util import load_config
from thinc.api import Config

from benchmarks.data_parallel import step_times
from benchmarks.record import write_record
from benchmarks.script import script_parser

SECTIONS = ["speed", "losses", "death"]
EQUAL_STEPS = 20
EVALUATED = 20
"""Sentences of an evaluation, which logs the loss of a step."""
READ = 4000
"""Sentences of training data."""


class Training:
    """A training in a folder of its own, in one process or several."""

    def __init__(self, config: Config, folder: Path, processes: int):
        folder.mkdir()
        self.folder = folder
        config = config.copy()
        callback = {"@callbacks": step_times.NAME, "folder": str(folder)}
        config["training"]["before_update"] = callback
        config["training"]["logger"]["output_file"] = str(folder / "log.jsonl")
        config.to_disk(folder / "config.cfg")
        launch = [sys.executable, "-m"]
        if processes > 1:
            number = str(processes)
            launch += ["torch.distributed.run", "--standalone", "--nproc-per-node", number, "-m"]
        train = ["spacy_psa", "train", str(folder / "config.cfg"), "--output", str(folder)]
        self.command = [*launch, *train, "--code", step_times.__file__]

    def start(self) -> "subprocess.Popen[str]":
        """Start the processes."""
        pipe, one_thread = subprocess.PIPE, {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            self.command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=one_thread
        )

    def run(self) -> None:
        """Train to the end."""
        run_at_once([self])

    def times(self, rank: int = 0) -> list[dict[str, Any]]:
        """The lines that `step_times` has written for a process."""
        path = self.folder / f"{rank}.jsonl"
        lines = path.read_text("utf8").splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]


def run_at_once(trainings: list[Training]) -> None:
    """Train to the end, all at the same time."""
    processes = [training.start() for training in trainings]
    for process in processes:
        said, _ = process.communicate()
        if process.returncode:
            sys.exit(f"the training failed:\n{said}")


def speed(
    config: Config, processes: int, steps: int, warm: int, rounds: int, folder: Path
) -> dict[str, Any]:
    config = config.merge({"training": {"max_steps": steps, "eval_frequency": 10 * steps}})
    batch = config["training"]["batcher"]["size"]

    def per_second(training: Training, count: int) -> float:
        at = {line["step"]: line["seconds"] for line in training.times()}
        return (steps - warm) * count * batch / (at[steps] - at[warm])

    rates: dict[str, Any] = {"steps": steps - warm, "one": [], "several": [], "apart": []}
    for number in range(rounds):
        for key, count in (("one", 1), ("several", processes)):
            training = Training(config, folder / f"speed-{number}-{key}", count)
            training.run()
            rates[key].append(round(per_second(training, count), 1))
        apart = [Training(config, folder / f"speed-{number}-{k}", 1) for k in range(processes)]
        run_at_once(apart)
        rates["apart"].append(round(sum(per_second(training, 1) for training in apart), 1))
        print(*(f"{key} {rates[key][-1]}" for key in ("one", "several", "apart")), flush=True)
    return rates


def losses(config: Config, processes: int, folder: Path) -> dict[str, Any]:
    config = config.merge({"training": {"max_steps": EQUAL_STEPS, "eval_frequency": 1}})
    _switch_off_dropout(config)
    size = config["training"]["batcher"]["size"]
    logged: dict[str, Any] = {}
    for key, count, batch in (("one", 1, processes * size), ("several", processes, size)):
        config["training"]["batcher"]["size"] = batch
        training = Training(config, folder / f"losses-{key}", count)
        training.run()
        log = srsly.read_jsonl(training.folder / "log.jsonl")
        logged[key] = [sum(line["losses"].values()) for line in log]
    pairs = zip(logged["one"], logged["several"], strict=True)
    return {**logged, "difference": max(abs(a - b) / abs(a) for a, b in pairs)}


def death(config: Config, processes: int, rounds: int, folder: Path) -> dict[str, Any]:
    config = config.merge({"training": {"max_steps": 0, "eval_frequency": 10_000}})
    deaths: dict[str, Any] = {"seconds": [], "codes": [], "said": ""}
    for number in range(rounds):
        training = Training(config, folder / f"death-{number}", processes)
        process = training.start()
        while len(training.times(processes - 1)) < 10 + 7 * number:
            time.sleep(0.01)
        first = training.times()[0]["process"]
        os.kill(training.times(processes - 1)[0]["process"], signal.SIGKILL)
        started = time.perf_counter()
        while Path(f"/proc/{first}").exists() and "Z" not in _state(first):
            time.sleep(0.001)
        deaths["seconds"].append(round(time.perf_counter() - started, 3))
        said, _ = process.communicate()
        deaths["codes"].append(process.returncode)
        deaths["said"] = next((line for line in said.splitlines() if "--resume" in line), "")
        print(deaths["seconds"][-1], flush=True)
    return deaths


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text("utf8").rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def _switch_off_dropout(block: dict[str, Any]) -> None:
    for key, value in block.items():
        if isinstance(value, dict):
            _switch_off_dropout(value)
        elif "dropout" in key:
            block[key] = 0.0


def main() -> None:
    options = script_parser(globals(), "CONFIG.cfg")
    options.add_argument("corpus", type=Path, metavar="CORPUS", help="train.spacy and dev.spacy")
    options.add_argument("out", type=Path, metavar="OUT.json")
    options.add_argument("--vectors", help="pipeline with word vectors")
    options.add_argument("--processes", type=int, default=2, help="how many (2)")
    options.add_argument("--batch", type=int, help="sentences per process and step")
    options.add_argument("--steps", type=int, default=400, help="steps of a training (400)")
    options.add_argument("--warm", type=int, default=100, help="steps that do not count (100)")
    options.add_argument("--rounds", type=int, default=5, help="times that it is repeated (5)")
    options.add_argument("--section", action="append", choices=SECTIONS, help="(all)")
    given = options.parse_args()
    data = [given.corpus / f"{part}.spacy" for part in ("train", "dev")]
    paths = {path.stem: str(path) for path in data} | {"vectors": given.vectors}
    used = load_config(given.config, interpolate=False).merge({"paths": paths})
    resolved = used.merge({"paths": {p.stem: str(p.resolve()) for p in data}}).interpolate()
    sections = given.section or SECTIONS
    if given.batch:
        used["training"]["batcher"]["size"] = given.batch
        resolved["training"]["batcher"]["size"] = given.batch
    resolved["corpora"]["train"]["limit"] = READ
    resolved["corpora"]["dev"]["limit"] = EVALUATED
    results = {"processes": given.processes, "batch": resolved["training"]["batcher"]["size"]}
    with TemporaryDirectory() as name:
        folder, count = Path(name), given.processes
        if "speed" in sections:
            results["speed"] = speed(resolved, count, given.steps, given.warm, given.rounds, folder)
        if "losses" in sections:
            results["losses"] = losses(resolved, count, folder)
        if "death" in sections:
            results["death"] = death(resolved, count, given.rounds, folder)
    seed, config = resolved["training"]["seed"], used.interpolate()
    write_record(given.out, "data_parallel", results, data=data, seed=seed, config=config)


if __name__ == "__main__":
    main()
