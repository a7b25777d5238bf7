"""Train on named entities of which half are hidden.

Hides half of the entities of the training data, drawn by a seed, and trains on the rest, one
system after the other:

  marginal   BiLSTM-CRF; hidden tokens have no annotation ("-") and are summed out
  as_o       the same BiLSTM-CRF; hidden tokens are outside of entities ("O")
  spacy_ner  spaCy's own `ner`, `spacy init config --optimize accuracy`, on the data of `marginal`
  whole      the BiLSTM-CRF with nothing hidden, to see what hiding costs

With --hide mentions, each entity is hidden with the probability --share, and all tokens outside of
entities stay annotated. With --hide sentences, whole sentences (docs) are hidden, with all their
tokens. Development and test data stay whole. Each system is scored on development data during its
training, and once on test data, with the weights of its best evaluation.

The record of a system is written as soon as it ends, as HIDE-SYSTEM.json. Ctrl-C ends a training;
its best weights so far then count. A system that has a record is passed over, so you can give the
command again after an interruption.

The `setup` of a record has `system`, `hide`, `share`, `seed`, `sentences` (of the training data),
`kept` and `hidden` (entities), and `ended`: "by its config" or "by hand".
"""

import argparse
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy
import spacy
import torch
from spacy.cli.init_config import init_config
from spacy.cli.train import train
from spacy.tokens import Doc
from thinc.api import Config

from benchmarks.cased_vectors import cased_vectors
from benchmarks.record import read_record, save_record
from benchmarks.script import script_parser
from benchmarks.wrap import wrap
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.scoring.provenance import command
from spacy_psa.scoring.result import measure

SYSTEMS = ["marginal", "as_o", "spacy_ner", "whole"]
HERE = Path(__file__).parent
BASE = HERE.parents[1] / "configs" / "ner" / "bilstm_crf.cfg"


def hide(docs: list[Doc], unit: str, share: float, seed: int) -> tuple[list[Doc], dict[str, int]]:
    """Hide annotation in copies of docs.

    Args:
        docs: the docs.
        unit: "mentions" or "sentences".
        share: the probability of a unit to be hidden.
        seed: the seed of the draw.

    Returns:
        The copies, and how many entities were `kept` and `hidden`.
    """
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
    """Copies of docs in which each token without annotation is outside of entities."""
    copies = [doc.copy() for doc in docs]
    for doc in copies:
        doc.set_ents(list(doc.ents), default="outside")
    return copies


def prepare(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the training data of each system to the work folder.

    Returns:
        What was hidden.
    """
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
    """The config of spaCy's `ner`; with 0 epochs, its patience ends the training."""
    config = init_config(lang="en", pipeline=["ner"], optimize="accuracy", gpu=False)
    config["initialize"]["vectors"] = "${paths.vectors}"
    if epochs:
        config["training"]["max_epochs"], config["training"]["patience"] = epochs, 0
    return config


def run(
    system: str, arguments: argparse.Namespace, experiment: dict[str, Any], name: str
) -> dict[str, Any]:
    """Train a system and score it on test data.

    Returns:
        The record, under that name.
    """
    folder = arguments.work / system
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)  # spaCy does not write to a log that exists
    config = (
        spacy_config(arguments.spacy_epochs)
        if system == "spacy_ner"
        else crf_config(experiment["sentences"], arguments.epochs)
    )
    vectors = arguments.vectors
    if system == "spacy_ner":
        vectors = cased_vectors(vectors, arguments.work / "cased-vectors")
    config["paths"].update(
        train=str(folder / "train.spacy"), dev=str(arguments.dev), vectors=str(vectors)
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
    setup = {"system": system, **experiment, "ended": ended}
    return wrap(result, "partial_annotation", name, command=command(), setup=setup)


def row(record: dict[str, Any]) -> str:
    results = record["results"]
    scores, best = results["scores"], results["best"]
    figures = [best["score"], *(scores[f"ents_{key}"] for key in "prf")]
    cells = [results["setup"]["system"], *(f"{100 * value:.2f}" for value in figures)]
    return f"| {' | '.join([*cells, str(best['epoch'])])} |"


def main() -> None:
    options = script_parser("benchmarks.partial_annotation.train", __doc__)
    for name in ("train", "dev", "test"):
        options.add_argument(name, type=Path, metavar=f"{name.upper()}.spacy")
    options.add_argument("--vectors", type=Path, required=True, help="pipeline with word vectors")
    options.add_argument(
        "--work", type=Path, required=True, help="folder for data, logs and models"
    )
    options.add_argument(
        "--hide", choices=["mentions", "sentences"], default="mentions", help="unit (mentions)"
    )
    options.add_argument("--share", type=float, default=0.5, help="probability to be hidden (0.5)")
    options.add_argument("--seed", type=int, default=0, help="of the draw and the trainings (0)")
    options.add_argument(
        "--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS[:3], help="all but whole"
    )
    options.add_argument("--epochs", type=int, default=12, help="of the BiLSTM-CRF (12)")
    options.add_argument("--spacy-epochs", type=int, default=0, help="0: its patience ends it")
    options.add_argument("--max-steps", type=int, default=0, help="end sooner, to try it out")
    options.add_argument("--results", type=Path, default=HERE / "results", help="folder of records")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    targets = {
        system: arguments.results / f"partial-{arguments.hide}-{system}.json"
        for system in arguments.systems
    }
    experiment = prepare(arguments)
    print(json.dumps(experiment), flush=True)
    for system, target in targets.items():
        if target.exists():
            print(f"{target} exists: {system} is not trained again", flush=True)
            continue
        save_record(run(system, arguments, experiment, target.stem), target)
    print("| system | dev F1 | test P | test R | test F1 | epoch |")
    print("| --- | --- | --- | --- | --- | --- |")
    for target in targets.values():
        print(row(read_record(target)))


if __name__ == "__main__":
    main()
