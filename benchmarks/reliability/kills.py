"""Kill a training at random moments, resume it, and compare its files with one that never was.

Trains CONFIG.cfg three times with `spacy-psa train --save-every N`, each time in new processes:

1. one step, so that numba's compiled loops are in its cache
2. without a kill
3. with kills: for each kill, it draws a step of the second training uniformly. It waits for the
   last checkpoint before this step, and then for a random part of the time between two
   checkpoints. Then SIGKILL ends the process: in the middle of a step, of an evaluation, or of
   writing a file. The next process continues with --resume

Then it compares the logs of the evaluations and the files of model-best and model-last byte for
byte, except for meta.json, which has the seconds of the training.

Results (kind "figures"): `save_every`; `overrides`, the settings that replace those of the config;
`steps` and `seconds` of the training without a kill, from its first step on; `kills`, each with
`after`, the checkpoint before it, `seconds`, the time since that checkpoint, `checkpoint`, the step
of the last checkpoint of the dead process, and `code`, its exit code; `files`, the number of
compared files; `bytes`, their size; `differing`, the names of those that differ.
"""

import random
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import srsly
from spacy.cli._util import parse_config_overrides
from spacy.util import load_config

from benchmarks.record import write_record
from benchmarks.script import script_parser

MODELS = ("model-best", "model-last")


class Training:
    """A training on the command line, in a folder of its own."""

    def __init__(self, config: Path, folder: Path, overrides: dict[str, str], save_every: int):
        self.folder = folder
        settings = {**overrides, "training.logger.output_file": "log.jsonl"}
        self.command = [sys.executable, "-m", "spacy_psa", "train", str(config.resolve())]
        self.command += ["--output", ".", "--save-every", str(save_every), "--resume"]
        self.command += [word for key, value in settings.items() for word in (f"--{key}", value)]
        folder.mkdir()

    def start(self) -> "subprocess.Popen[str]":
        """Start a process and wait until its training begins."""
        pipe, both = subprocess.PIPE, subprocess.STDOUT
        process = subprocess.Popen(
            self.command, cwd=self.folder, stdout=pipe, stderr=both, text=True
        )
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "LOSS" in line:  # the head of the table of evaluations
                return process
        sys.exit(f"the training did not begin:\n{said}")

    def run(self) -> float:
        """Train to the end, and return the seconds from the first step on."""
        process = self.start()
        started = time.perf_counter()
        said, _ = process.communicate()
        if process.returncode:
            sys.exit(f"the training failed:\n{said}")
        return time.perf_counter() - started

    def kill(self, after: int, seconds: float) -> dict[str, Any]:
        """Train up to some seconds after a checkpoint, then kill the process."""
        process = self.start()
        while process.poll() is None and self.checkpoint < after:
            time.sleep(0.001)
        time.sleep(seconds)
        process.kill()
        process.communicate()
        kill = {"after": after, "seconds": round(seconds, 3)}
        return {**kill, "checkpoint": self.checkpoint, "code": process.returncode}

    @property
    def checkpoint(self) -> int:
        """The step of the last checkpoint; -1 before the first."""
        names = [path.stem for path in self.folder.glob("checkpoints/step-*.pt")]
        return max((int(name.removeprefix("step-")) for name in names), default=-1)

    def files(self) -> dict[str, bytes]:
        """The files of the training, by name."""
        paths = [path for model in MODELS for path in (self.folder / model).rglob("*")]
        kept = [path for path in paths if path.is_file() and path.name != "meta.json"]
        kept.append(self.folder / "log.jsonl")
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in sorted(kept)}


def differing(files: dict[str, bytes], others: dict[str, bytes]) -> list[str]:
    """The names of the files that differ or are missing on one side."""
    return sorted(n for n in files.keys() | others.keys() if files.get(n) != others.get(n))


def measure(
    config: Path, overrides: dict[str, str], save_every: int, kills: int, seed: int, folder: Path
) -> dict[str, Any]:
    """The figures of one config."""
    warm = {**overrides, "training.max_steps": "1"}
    Training(config, folder / "warm", warm, save_every).run()
    whole = Training(config, folder / "whole", overrides, save_every)
    seconds = whole.run()
    steps = int(list(srsly.read_jsonl(whole.folder / "log.jsonl"))[-1]["step"])
    killed = Training(config, folder / "killed", overrides, save_every)
    draw = random.Random(seed)
    drawn = sorted(draw.randrange(steps) for _ in range(kills))
    killings = []
    for step in drawn:
        late = draw.uniform(0, seconds / steps * save_every)
        killings.append(killed.kill(step // save_every * save_every, late))
        print(killings[-1], flush=True)
    killed.run()
    made = whole.files()
    return {
        "save_every": save_every,
        "overrides": {key: value for key, value in overrides.items() if "paths." not in key},
        "steps": steps,
        "seconds": round(seconds, 1),
        "kills": killings,
        "files": len(made),
        "bytes": sum(map(len, made.values())),
        "differing": differing(made, killed.files()),
    }


def main() -> None:
    options = script_parser(globals(), "CONFIG.cfg")
    options.add_argument("corpus", type=Path, metavar="CORPUS", help="train.spacy and dev.spacy")
    options.add_argument("out", type=Path, metavar="OUT.json")
    options.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    options.add_argument("--kills", type=int, default=5, help="number of kills (5)")
    options.add_argument("--save-every", type=int, default=20, help="between checkpoints (20)")
    options.add_argument("--seed", type=int, default=0, help="seed of the moments (0)")
    given = options.parse_args()
    data = [given.corpus / f"{part}.spacy" for part in ("train", "dev")]
    chosen = {f"paths.{path.stem}": str(path) for path in data}
    for setting in given.settings:
        if not re.fullmatch(r"[^=]+=.+", setting):
            sys.exit(f"{setting}: expected a setting and its value, such as training.max_epochs=3")
        key, _, value = setting.partition("=")
        chosen[key] = value
    overrides = {**chosen, **{f"paths.{path.stem}": str(path.resolve()) for path in data}}
    with TemporaryDirectory() as folder:
        often = given.save_every, given.kills, given.seed
        results = measure(given.config, overrides, *often, Path(folder))
    # The command line reads values as JSON, or else as strings.
    read = parse_config_overrides([f"--{key}={value}" for key, value in chosen.items()])
    full = load_config(given.config, read, interpolate=True)
    write_record(given.out, "reliability", results, data=data, seed=given.seed, config=full)


if __name__ == "__main__":
    main()
