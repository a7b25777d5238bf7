"""Train systems of the papers on real corpora, one after the other, and record them.

The names are the keys of benchmarks/systems/systems.yml. Run this in a folder whose `assets` and
`convert` have made the corpora. The model of NAME is written to training/NAME, its record to
benchmarks/systems/results/NAME.json. A system is left out if it has a record, or if training/NAME
is there, so that two processes can share one list. With `--resume`, a training that was cut short
goes on where it was.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import srsly

from benchmarks.record import FOLDER, save_record
from benchmarks.script import script_parser
from benchmarks.wrap import wrap
from spacy_psa.scoring.provenance import command

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def read_systems() -> dict[str, dict[str, Any]]:
    """What systems.yml lists, by name: `task`, `config`, `corpus` and `settings`."""
    return dict(srsly.read_yaml(HERE / "systems.yml"))


def run(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", *map(str, words)], check=True)


def train_and_record(experiment: str, name: str, out: Path, corpus: str, seed: int) -> None:
    """Train by the config in a folder, score on test data and write the record.

    A training that was cut short goes on where it was.

    Args:
        experiment: the folder of benchmarks/ whose results/NAME.json is written.
        name: of the record.
        out: the folder of `config.cfg`, `log.jsonl` and the models.
        corpus: its folder in assets/ and corpus/.
        seed: of the training.
    """
    config, log, data = out / "config.cfg", out / "log.jsonl", Path("corpus", corpus)
    paths = "--paths.train", data / "train.spacy", "--paths.dev", data / "dev.spacy"
    seeded = "--system.seed", str(seed), "--resume"
    run("spacy_psa", "train", config, "--output", out, *paths, *seeded)
    model, test = out / "model-best", data / "test.spacy"
    checked = "--data", Path("assets", corpus), "--data", data
    run("spacy_psa", "report", model, test, "--output", out / name, "--log", log, *checked)
    report = json.loads((out / f"{name}.json").read_text(encoding="utf8"))
    record = wrap(report, experiment, name, command=command())
    save_record(record, FOLDER / experiment / "results" / f"{name}.json")


def train_system(name: str, system: dict[str, Any], seed: int) -> None:
    """Train a system, score it on test data and write its record."""
    out = Path("training", name)
    base = f"configs/{system['task']}/{system['config']}.cfg"
    laid_over = f"configs/corpora/{system['corpus']}.cfg"
    config, log = out / "config.cfg", out / "log.jsonl"
    run("spacy_psa", "merge-config", base, laid_over, config, *system["settings"], "--log", log)
    train_and_record("systems", name, out, system["corpus"], seed)


def parser() -> argparse.ArgumentParser:
    options = script_parser("benchmarks.systems.train", __doc__)
    options.add_argument("names", nargs="+", choices=sorted(read_systems()), metavar="NAME")
    options.add_argument("--seed", type=int, default=0, help="seed of the training (0)")
    options.add_argument("--resume", action="store_true", help="go on with trainings cut short")
    return options


def main() -> None:
    systems, arguments = read_systems(), parser()
    given = arguments.parse_args()
    for corpus in {systems[name]["corpus"] for name in given.names}:
        if not Path("corpus", corpus).exists():
            arguments.error(
                f"corpus/{corpus} is missing; run `python -m spacy project run assets . "
                f"--vars.corpus {corpus}`, then the same with `convert`"
            )
    for name in given.names:
        if (RESULTS / f"{name}.json").exists():
            print(f"{name}: it has a record")
            continue
        try:
            Path("training", name).mkdir(parents=True, exist_ok=given.resume)
        except FileExistsError:
            print(f"{name}: training/{name} is there already; --resume goes on with it")
            continue
        train_system(name, systems[name], given.seed)


if __name__ == "__main__":
    main()
