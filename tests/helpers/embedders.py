"""Small embedders, one of each kind that reads a word or its tag, and a listener."""

from typing import Any

import numpy
import torch
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model

LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}

# What stands after a comma tells two of one architecture apart.
TENER_CHARACTERS: dict[str, dict[str, Any]] = {
    "CharBiLSTM": {"width": 4, "hidden": 3},
    "CharBiLSTM, max": {"width": 6, "hidden": 4, "project": 5, "pool": "max"},
    "CharCNN": {"width": 6, "kernels": 5, "project": 4},
    "CharIntNet": {"width": 4, "kernels": 3, "growth": 2, "blocks": 1, "kernel_widths": [2, 3]},
    "CharTransformer": {"width": 6, "heads": 3, "inner": 5, "project": 4},
    "CharAdaTrans": {"width": 12, "heads": 3, "inner": 5, "project": 4},
}
CHARACTERS = {
    **TENER_CHARACTERS,
    "CharNgramCNN": {"width": 3, "kernels": 2},
    "CharConcat": {"letters": 3, "width": 4},
}
EMBEDDERS = {**CHARACTERS, "WordShape": {}, "TagEmbed": {"width": 4}}


def block(name: str, **options: Any) -> dict[str, Any]:
    """The config of an embedder of `EMBEDDERS`."""
    architecture = f"spacy-psa.{name.partition(',')[0]}.v1"
    return {"@architectures": architecture, **EMBEDDERS[name], **options}


def built(name: str, **options: Any) -> Model:
    """An initialized embedder of `EMBEDDERS`, with weights of one seed."""
    torch.manual_seed(0)
    model = registry.resolve({"embed": block(name, **options)})["embed"]
    model.initialize()
    return model


def having_met(model: Model, docs: list[Doc]) -> Model:
    """The embedder, with weights of one seed, when it has met the docs."""
    torch.manual_seed(0)
    numpy.random.seed(0)
    model.initialize(X=docs)
    model.begin_update(docs)
    return model
