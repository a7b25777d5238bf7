"""A small hyper-parameter search over `crf_ner`: its space, its data and its settings."""

import os
import signal
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import DocBin
from spacy.util import load_config

from spacy_psa.laboratory.search.space import read_space
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import make_examples

BASE = CONFIGS / "ner" / "bilstm_crf.cfg"
TOK2VEC = "components.ner.model.tok2vec"
TINY = {
    f"{TOK2VEC}.embed.*.words.width": 8,
    f"{TOK2VEC}.embed.*.characters.width": 4,
    f"{TOK2VEC}.embed.*.characters.hidden": 4,
    f"{TOK2VEC}.encode.hidden": 8,
    "training.max_steps": 12,
    "training.eval_frequency": 4,
}
RATE = "training.optimizer.learn_rate.initial_rate"
SPACE = f"""
[{RATE}]
type = "float"
low = 0.001
high = 0.5
log = true

[{TOK2VEC}.encode.hidden]
type = "int"
low = 4
high = 8
step = 4

["{TOK2VEC}.embed.*.words"]
lower = {{type = "categorical", choices = [true, false]}}
"""


def write_search(folder: Path) -> Path:
    """Write `space.toml`, and `train.spacy` for train and dev, into a folder."""
    docs = [example.reference for example in make_examples(spacy.blank("en"))]
    DocBin(docs=docs * 2).to_disk(folder / "train.spacy")
    (folder / "space.toml").write_text(SPACE)
    return folder


def overrides(folder: Path) -> dict[str, Any]:
    data = str(folder / "train.spacy")
    return {**TINY, "paths.train": data, "paths.dev": data}


def override_words(folder: Path) -> list[str]:
    """The overrides as words of a command line."""
    return [word for name, value in overrides(folder).items() for word in (f"--{name}", str(value))]


def search_together(folder: Path, storage: str, limit: int, killed_after: int | None) -> None:
    """Search until there are `limit` trials; be killed in the trial after so many."""
    from spacy_psa.laboratory.search.study import Search

    config, space = search_config(folder), read_space(folder / "space.toml")
    search = Search(config, space, storage, sampler="random", seed=5, startup=100)

    def die(evaluation: int, score: float) -> None:
        if evaluation == 1 and done == killed_after:
            os.kill(os.getpid(), signal.SIGKILL)

    done = 0
    while search.step(die, limit) is not None:
        done += 1


def search_config(folder: Path) -> Any:
    return load_config(BASE, overrides=overrides(folder), interpolate=False)
