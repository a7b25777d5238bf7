"""Learning from entity annotation half of which is hidden.

usage: python benchmarks/partial_annotation.py TRAIN.spacy DEV.spacy TEST.spacy \\
           --vectors VECTORS --work FOLDER [--hide mentions|sentences] [--systems ...]

Hides, at random but by one seed, half of the training data's entities, and trains on what
is left, one system after the other:

  marginal   BiLSTM-CRF; hidden tokens have no annotation ("-") and are summed out
  as_o       the same BiLSTM-CRF; hidden tokens are outside of entities ("O")
  spacy_ner  spaCy's own `ner`, `spacy init config --optimize accuracy`, from the data of
             `marginal`
  whole      the BiLSTM-CRF with nothing hidden, to see what hiding costs

With --hide mentions each entity is hidden with that probability, and what is outside of
every entity stays annotated; with --hide sentences each sentence (a Doc) is, with all its
tokens. Development and test data stay whole. Each system is evaluated on development data
while it trains and once on test data, with the weights of its best evaluation; its result
(format: spacy_psa/scoring/result.py, and what was hidden under `experiment`) is written as
soon as it ends; Ctrl-C ends a training, whose best weights so far then count. A system whose
result is there is passed over, so the command can be given again after an interruption.
"""

import argparse
import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy
import spacy
import torch
from spacy.cli.init_config import init_config
from spacy.cli.train import train
from spacy.tokens import Doc
from thinc.api import Config

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.scoring.result import measure

SYSTEMS = ["marginal", "as_o", "spacy_ner", "whole"]
BASE = Path(__file__).parent.parent / "configs" / "ner" / "bilstm_crf.cfg"


def hide(docs: list[Doc], unit: str, share: float, seed: int) -> tuple[list[Doc], dict[str, int]]:
    """Copies of docs in which annotation is missing; how many entities were kept and hidden."""
    random = numpy.random.default_rng(seed)
    counts = {"kept": 0, "hidden": 0}
    copies = [doc.copy() for doc in docs]
    for doc in copies:
        ents = list(doc.ents)
        if unit == "mentions":
            drawn = random.random(len(ents)) < share
            kept = [ent for ent, gone in zip(ents, drawn) if not gone]
            hidden = [ent for ent, gone in zip(ents, drawn) if gone]
            doc.set_ents(kept, missing=hidden, default="outside")
        elif random.random() < share:
            kept, hidden = [], ents
            doc.set_ents([], default="missing")
        else:
            kept, hidden = ents, []
        counts["kept"] += len(kept)
        counts["hidden"] += len(hidden)
    return copies, counts


def as_outside(docs: list[Doc]) -> list[Doc]:
    """Copies of docs in which what is not annotated is outside of entities."""
    copies = [doc.copy() for doc in docs]
    for doc in copies:
        doc.set_ents(list(doc.ents), default="outside")
    return copies


def prepare(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the training data of each system to the work folder, and tell what was hidden."""
    docs = read_docbin(arguments.train, spacy.blank("en").vocab)
    hidden, counts = hide(docs, arguments.hide, arguments.share, arguments.seed)
    data = {"marginal": hidden, "as_o": as_outside(hidden), "spacy_ner": hidden, "whole": docs}
    for system in arguments.systems:
        write_docbin(data[system], arguments.work / system / "train.spacy")
    return {
        "hide": arguments.hide,
        "share": arguments.share,
        "seed": arguments.seed,
        "sentences": len(docs),
        **counts,
    }


def crf_config(sentences: int, epochs: int) -> Config:
    config = Config().from_disk(BASE, interpolate=False)
    training = config["training"]
    steps = math.ceil(sentences / training["batcher"]["size"])
    training["eval_frequency"] = training["optimizer"]["learn_rate"]["steps_per_epoch"] = steps
    training["max_epochs"], training["patience"] = epochs, 0
    return config


def spacy_config(epochs: int) -> Config:
    """`epochs` 0: until it stops itself."""
    config = init_config(lang="en", pipeline=["ner"], optimize="accuracy", gpu=False)
    config["initialize"]["vectors"] = "${paths.vectors}"
    if epochs:
        config["training"]["max_epochs"], config["training"]["patience"] = epochs, 0
    return config


def run(system: str, arguments: argparse.Namespace, experiment: dict[str, Any]) -> dict[str, Any]:
    """Train a system and measure it on test data."""
    folder = arguments.work / system
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)  # spaCy does not log where there is a log already
    config = (
        spacy_config(arguments.spacy_epochs)
        if system == "spacy_ner"
        else crf_config(experiment["sentences"], arguments.epochs)
    )
    config["paths"].update(
        train=str(folder / "train.spacy"), dev=str(arguments.dev), vectors=str(arguments.vectors)
    )
    config["system"]["seed"] = arguments.seed
    config["training"]["logger"] = {
        "@loggers": "spacy.ConsoleLogger.v3",
        "progress_bar": None,
        "console_output": True,
        "output_file": str(log),
    }
    if arguments.max_steps:
        config["training"]["max_steps"] = arguments.max_steps
        config["training"]["eval_frequency"] = max(1, arguments.max_steps // 2)
    config.to_disk(folder / "config.cfg")
    ended = "by its config"
    try:
        train(folder / "config.cfg", folder)
    except KeyboardInterrupt:
        ended = "by hand"
    shutil.rmtree(folder / "model-last", ignore_errors=True)
    model = str(folder / "model-best")
    data = [arguments.train, folder / "train.spacy", arguments.dev]
    result = measure(spacy.load(model), model, arguments.test, data, log)
    command = " ".join(["python", *sys.argv])
    about = {"system": system, **experiment, "ended": ended, "command": command}
    return {**result, "experiment": about}


def row(result: dict[str, Any]) -> str:
    scores, best = result["scores"], result["best"]
    figures = [best["score"], *(scores[f"ents_{key}"] for key in "prf")]
    cells = [result["experiment"]["system"], *(f"{100 * value:.2f}" for value in figures)]
    return f"| {' | '.join([*cells, str(best['epoch'])])} |"


def main(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    targets = {
        system: arguments.results / f"partial-{arguments.hide}-{system}.json"
        for system in arguments.systems
    }
    experiment = prepare(arguments)
    print(json.dumps(experiment), flush=True)
    for system, target in targets.items():
        if target.exists():
            print(f"{target}: there already, {system} is not trained again", flush=True)
            continue
        result = run(system, arguments, experiment)
        with atomic_path(target) as temporary:
            temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf8")
    print("| system | dev F1 | test P | test R | test F1 | epoch |")
    print("| --- | --- | --- | --- | --- | --- |")
    for target in targets.values():
        print(row(json.loads(target.read_text(encoding="utf8"))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("train", "dev", "test"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="data, logs and models")
    parser.add_argument("--hide", choices=["mentions", "sentences"], default="mentions")
    parser.add_argument("--share", type=float, default=0.5, help="probability of being hidden")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS[:3])
    parser.add_argument("--epochs", type=int, default=12, help="of the BiLSTM-CRF")
    parser.add_argument("--spacy-epochs", type=int, default=0, help="0: until it stops itself")
    parser.add_argument("--max-steps", type=int, default=0, help="to try it out")
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"))
    main(parser.parse_args())
