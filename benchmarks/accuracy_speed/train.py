"""Train spaCy's `ner` by its quickstart configs on CoNLL-2003, and record it.

The config is that of `spacy init config --pipeline ner --optimize KIND`, with the vectors of the
corpus for "accuracy", whose own vectors are those of en_core_web_lg. spaCy's patience ends the
training. Run this in a folder whose `assets` and `convert` have made the corpus. The model is
written to training/spacy-KIND, the record to benchmarks/accuracy_speed/results/spacy-KIND.json.
"""

import json
import subprocess
import sys
from pathlib import Path

from spacy.cli.init_config import init_config

from benchmarks.accuracy_speed.systems import OWN
from benchmarks.cased_vectors import cased_vectors
from benchmarks.record import FOLDER, save_record
from benchmarks.script import script_parser
from benchmarks.wrap import wrap
from spacy_psa.scoring.provenance import command

CORPUS = Path("corpus/conll2003")


def train(kind: str, seed: int) -> None:
    """Train by one config, score the best model on test data and write the record."""
    out = Path("training", f"spacy-{kind}")
    out.mkdir(parents=True)
    log = out / "log.jsonl"
    config = init_config(lang="en", pipeline=["ner"], optimize=kind, gpu=False)
    config["paths"]["train"] = str(CORPUS / "train.spacy")
    config["paths"]["dev"] = str(CORPUS / "dev.spacy")
    config["paths"]["vectors"] = None
    if kind == "accuracy":
        vectors = cased_vectors(CORPUS / "vectors", Path("training/spacy-vectors"))
        config["paths"]["vectors"] = str(vectors)
    config["initialize"]["vectors"] = "${paths.vectors}"
    config["system"]["seed"] = seed
    config["training"]["logger"] = {
        "@loggers": "spacy.ConsoleLogger.v3",
        "output_file": str(log),
        "progress_bar": None,
        "console_output": True,
    }
    config.to_disk(out / "config.cfg")
    run("spacy", "train", out / "config.cfg", "--output", out)
    model, test = out / "model-best", CORPUS / "test.spacy"
    data = "--data", CORPUS
    run("spacy_psa", "report", model, test, "--output", out / "report", "--log", log, *data)
    report = json.loads((out / "report.json").read_text(encoding="utf8"))
    record = wrap(report, OWN, out.name, command=command())
    save_record(record, FOLDER / OWN / "results" / f"{out.name}.json")


def run(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", *map(str, words)], check=True)


def main() -> None:
    options = script_parser("benchmarks.accuracy_speed.train", __doc__)
    options.add_argument("kinds", nargs="+", choices=["efficiency", "accuracy"])
    options.add_argument("--seed", type=int, default=0, help="seed of the training (0)")
    given = options.parse_args()
    for kind in given.kinds:
        train(kind, given.seed)


if __name__ == "__main__":
    main()
