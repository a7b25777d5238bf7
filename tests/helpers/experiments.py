"""Plans of tiny trainings, and records that were never trained."""

from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import DocBin

from spacy_psa.laboratory.experiments.record import Evaluation, Record, Scored
from tests.helpers.pipelines import make_examples
from tests.helpers.trainings import make_config


def write_data(folder: Path) -> None:
    """Write `train.spacy`, which is for all parts, and `tiny.cfg`."""
    docs = [example.reference for example in make_examples(spacy.blank("en"))]
    DocBin(docs=docs).to_disk(folder / "train.spacy")
    config = make_config(folder / "train.spacy", max_steps=24, eval_frequency=8)
    config["training"]["logger"]["output_file"] = None
    config["paths"].update(train=None, dev=None)
    for name in ("train", "dev"):
        config["corpora"][name]["path"] = f"${{paths.{name}}}"
    config["training"]["seed"] = "${system.seed}"
    config["system"]["seed"] = 0
    config.to_disk(folder / "tiny.cfg", interpolate=False)


def plan_text(*tables: str, seeds: str = "[1, 2]", paths: str = "") -> str:
    """A plan with some tables of runs."""
    data = f'[paths]\ntrain = "train.spacy"\ndev = "train.spacy"\n{paths}\n'
    return "\n".join([f"seeds = {seeds}", data, *tables])


def run_table(name: str, more: str = "") -> str:
    """The table of a run."""
    return f'[runs.{name}]\nconfig = "tiny.cfg"\n{more}\n'


def make_record(
    run: str = "a",
    seed: int = 1,
    counts: list[tuple[int, int, int]] | None = None,
    scores: tuple[float, ...] = (0.0, 0.5),
    **more: Any,
) -> Record:
    """A finished record; its score is made of the counts."""
    counts = counts or [(1, 2, 2), (1, 1, 1)]
    right, given, gold = (sum(column) for column in zip(*counts))
    f1 = 2 * right / (given + gold)
    dev = [
        Evaluation(epoch=n, step=10 * n, score=s, scores={}, losses={})
        for n, s in enumerate(scores)
    ]
    fields: dict[str, Any] = {
        "plan": "plan",
        "run": run,
        "seed": seed,
        "state": "finished",
        "hash": f"{run}{seed}",
        "test_hash": None,
        "date": "2026-01-01T00:00:00+00:00",
        "command": "spacy-psa experiment run plan.toml",
        "commit": None,
        "modified": None,
        "data": {"dev.spacy": "0" * 32},
        "machine": {},
        "versions": {},
        "base": "a.cfg",
        "layers": [],
        "settings": {},
        "config": {},
        "test": None,
        "metric": "ents_f",
        "evaluations": dev,
        "best": max(dev, key=lambda each: each.score),
        "dev": Scored(path="dev.spacy", scores={"ents_f": f1}, sentences={"ents_f": counts}),
    }
    return Record.model_validate({**fields, **more})
