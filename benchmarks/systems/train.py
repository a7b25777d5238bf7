"""Train systems of the papers on real corpora, one after the other, and record them.

The names are the keys of benchmarks/systems/systems.yml. Run this in a folder where the project's
`assets` and `convert` have made the corpora. The model of NAME is in training/NAME, its record in
benchmarks/systems/results/NAME.json. Systems with a record or a folder training/NAME are skipped,
so that two processes can share one list. `--resume` continues an interrupted training.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import srsly
from thinc.api import Config

from benchmarks.record import save_record
from benchmarks.script import script_parser
from benchmarks.wrap import wrap
from spacy_psa.scoring.provenance import command

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def read_systems() -> dict[str, dict[str, Any]]:
    """The systems of systems.yml by name: `task`, `config`, `corpus` and `settings`."""
    return dict(srsly.read_yaml(HERE / "systems.yml"))


def run(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", *map(str, words)], check=True)


def log_to(config: Config, log: Path) -> None:
    """Let a training print its scores and write them to a file."""
    logger = {"@loggers": "spacy.ConsoleLogger.v3", "progress_bar": None, "console_output": True}
    config["training"]["logger"] = {**logger, "output_file": str(log)}


def train_and_record(experiment: str, name: str, out: Path, corpus: str, seed: int) -> None:
    """Train with the config in a folder, score on test data and write the record.

    It continues an interrupted training. The folder `out` has `config.cfg`, `log.jsonl` and the
    models.
    """
    config, data = out / "config.cfg", Path("corpus", corpus)
    paths = "--paths.train", data / "train.spacy", "--paths.dev", data / "dev.spacy"
    seeded = "--system.seed", str(seed), "--resume"
    run("spacy_psa", "train", config, "--output", out, *paths, *seeded)
    record_test(experiment, name, out, data / "test.spacy", Path("assets", corpus), data)


def record_test(experiment: str, name: str, out: Path, test: Path, *data: Path) -> None:
    """Score the best model of a folder on test data and write the record of its training."""
    checked = [word for path in data for word in ("--data", path)]
    files = "--output", out / name, "--log", out / "log.jsonl"
    run("spacy_psa", "report", out / "model-best", test, *files, *checked)
    report = json.loads((out / f"{name}.json").read_text(encoding="utf8"))
    save_record(wrap(report, experiment, name, command=command()))


def train_system(name: str, system: dict[str, Any], seed: int) -> None:
    """Train a system, score it on test data and write its record."""
    out = Path("training", name)
    base = f"configs/{system['task']}/{system['config']}.cfg"
    laid_over = f"configs/corpora/{system['corpus']}.cfg"
    config, log = out / "config.cfg", out / "log.jsonl"
    run("spacy_psa", "merge-config", base, laid_over, config, *system["settings"], "--log", log)
    train_and_record("systems", name, out, system["corpus"], seed)


def main() -> None:
    systems, options = read_systems(), script_parser(globals())
    options.add_argument("names", nargs="+", choices=sorted(systems), metavar="NAME")
    options.add_argument("--seed", type=int, default=0, help="seed of the training (0)")
    options.add_argument("--resume", action="store_true", help="continue interrupted trainings")
    given = options.parse_args()
    for corpus in {systems[name]["corpus"] for name in given.names}:
        if not Path("corpus", corpus).exists():
            options.error(
                f"corpus/{corpus} is missing; run `python -m spacy project run assets . "
                f"--vars.corpus {corpus}`, then the same with `convert`"
            )
    for name in given.names:
        if (RESULTS / f"{name}.json").exists():
            print(f"{name}: has a record")
            continue
        try:
            Path("training", name).mkdir(parents=True, exist_ok=given.resume)
        except FileExistsError:
            print(f"{name}: training/{name} is there already; --resume continues it")
            continue
        train_system(name, systems[name], given.seed)


if __name__ == "__main__":
    main()
