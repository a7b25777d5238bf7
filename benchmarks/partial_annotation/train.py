"""Train on named entities of which half are hidden.

Hides half of the entities of the training data, drawn by a seed. All tokens outside of entities
stay annotated. Then it trains one system after the other:

  marginal   BiLSTM-CRF; hidden tokens have no annotation ("-") and are marginalised over
  as_o       the same BiLSTM-CRF; hidden tokens are outside of entities ("O")
  spacy_ner  spaCy's own `ner`, `spacy init config --optimize accuracy`, on the data of `marginal`

Development and test data stay complete. Each system is scored on development data during its
training, and once on test data, with the weights of its best evaluation.

Writes benchmarks/partial_annotation/results/mentions-SYSTEM.json as soon as a system is finished.
Ctrl-C ends a training; then its best weights so far count. Systems with a record are skipped, so
the same command continues after an interruption.

The `setup` of a record has `system`, `hide` ("mentions"), `share` (the probability of an entity to
be hidden), `seed`, `sentences` (of the training data), `kept` and `hidden` (entities), and `ended`:
"by its config" or "by hand".
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
from benchmarks.record import save_record
from benchmarks.script import script_parser
from benchmarks.systems.train import log_to
from benchmarks.wrap import wrap
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.scoring.result import measure

SYSTEMS = ["marginal", "as_o", "spacy_ner"]
SHARE = 0.5
HERE = Path(__file__).parent
BASE = HERE.parents[1] / "configs" / "ner" / "bilstm_crf.cfg"


def hide(docs: list[Doc], share: float, seed: int) -> tuple[list[Doc], dict[str, int]]:
    """Hide each entity with a probability, in copies of docs.

    Returns:
        The copies, and the number of entities that were `kept` and `hidden`.
    """
    random = numpy.random.default_rng(seed)
    counts = {"kept": 0, "hidden": 0}
    copies = [doc.copy() for doc in docs]
    for doc in copies:
        ents = list(doc.ents)
        drawn = random.random(len(ents)) < share
        kept = [ent for ent, gone in zip(ents, drawn) if not gone]
        hidden = [ent for ent, gone in zip(ents, drawn) if gone]
        doc.set_ents(kept, missing=hidden, default="outside")
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
    """Write the training data of each system to the work folder, and describe it."""
    docs = read_docbin(arguments.train, spacy.blank("en").vocab)
    hidden, counts = hide(docs, SHARE, arguments.seed)
    data = {"marginal": hidden, "as_o": as_outside(hidden), "spacy_ner": hidden}
    for system in arguments.systems:
        write_docbin(data[system], arguments.work / system / "train.spacy")
    setup = {"hide": "mentions", "share": SHARE, "seed": arguments.seed}
    return {**setup, "sentences": len(docs), **counts}


def crf_config(sentences: int, epochs: int) -> Config:
    config = Config().from_disk(BASE, interpolate=False)
    training = config["training"]
    steps = math.ceil(sentences / training["batcher"]["size"])
    training["eval_frequency"] = training["optimizer"]["learn_rate"]["steps_per_epoch"] = steps
    training["max_epochs"], training["patience"] = epochs, 0
    return config


def spacy_config() -> Config:
    """The config of spaCy's `ner`, whose patience ends the training."""
    config = init_config(lang="en", pipeline=["ner"], optimize="accuracy", gpu=False)
    config["initialize"]["vectors"] = "${paths.vectors}"
    return config


def run(system: str, arguments: argparse.Namespace, setup: dict[str, Any]) -> dict[str, Any]:
    """Train a system, score it on test data, and return the record."""
    folder, vectors = arguments.work / system, arguments.vectors
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)  # spaCy does not write to a log that exists
    if system == "spacy_ner":
        config = spacy_config()
        vectors = cased_vectors(vectors, arguments.work / "cased-vectors")
    else:
        config = crf_config(setup["sentences"], arguments.epochs)
    config["paths"].update(
        train=str(folder / "train.spacy"), dev=str(arguments.dev), vectors=str(vectors)
    )
    config["system"]["seed"] = arguments.seed
    log_to(config, log)
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
    described = {"system": system, **setup, "ended": ended}
    name = f"mentions-{system}"
    return wrap(result, "partial_annotation", name, setup=described)


def main() -> None:
    options = script_parser(globals(), "TRAIN.spacy", "DEV.spacy", "TEST.spacy")
    options.add_argument("--vectors", type=Path, required=True, help="pipeline with word vectors")
    options.add_argument("--work", type=Path, required=True, help="folder for data and models")
    options.add_argument("--seed", type=int, default=0, help="of the draw and the trainings (0)")
    options.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS, help="(all)")
    options.add_argument("--epochs", type=int, default=12, help="of the BiLSTM-CRF (12)")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    setup = prepare(arguments)
    print(json.dumps(setup), flush=True)
    for system in arguments.systems:
        target = HERE / "results" / f"mentions-{system}.json"
        if target.exists():
            print(f"{target} exists: {system} is not trained again", flush=True)
            continue
        save_record(run(system, arguments, setup), target)


if __name__ == "__main__":
    main()
