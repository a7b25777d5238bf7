"""Annotation that begins without a model: one that knows nothing, and the first that is trained."""

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from spacy.language import Language
from spacy.tokens import Doc

from spacy_psa.corpora.docbin import write_docbin
from spacy_psa.corpora.marked_text import INCORRECT
from spacy_psa.corpora.readers import blank
from spacy_psa.errors import InputError
from spacy_psa.loading import vocab_with_vectors
from spacy_psa.modules.pretrained_files import read_pretrained
from spacy_psa.training.config import initialize
from spacy_psa.training.recipes import ENCODERS, make_config

BeginningTask = Literal["ner", "chunker", "tagger"]
MOST_STEPS = 600
"""The most updates of the first training, those of the configs for little data."""
_TINY = {
    "@architectures": "spacy-psa.CRF.v1",
    "tok2vec": {
        "@architectures": "spacy.HashEmbedCNN.v2",
        "width": 8,
        "depth": 1,
        "embed_size": 16,
        "window_size": 1,
        "maxout_pieces": 2,
        "subword_features": False,
        "pretrained_vectors": None,
    },
}


class Beginning(BaseModel):
    """The model that is to be made: its task, its language, and what it may build on."""

    labels: tuple[str, ...]
    task: BeginningTask = "ner"
    lang: str = "en"
    vectors: str | None = None
    """A pipeline with word vectors."""
    base: str | None = None
    """A pretrained transformer."""


def check_label(label: str, known: Sequence[str] = ()) -> str:
    """Return a label without blanks around it; it must differ from known ones in more than case."""
    label = label.strip()
    if not label or label == "O" or not label.isprintable() or "," in label or len(label) > 60:
        raise InputError(f"{label!r} cannot be a label: use a name such as PER")
    for other in known:
        if other.casefold() == label.casefold():
            raise InputError(f"there is already a label {other!r}: use it, or another name")
    return label


def without_knowledge(begin: Beginning) -> Language:
    """Make a pipeline that knows the labels, but whose predictions mean nothing.

    Raises:
        InputError: also if the first training would not find its vectors or its encoder.
    """
    labels: list[str] = []
    for label in begin.labels:
        labels.append(check_label(label, labels))
    if not labels:
        raise InputError("--labels is empty: name the labels, such as PER,ORG,LOC")
    if begin.vectors is not None:
        vocab_with_vectors(begin.vectors)
    if begin.base is not None:
        read_pretrained(ENCODERS.get(begin.base, begin.base))
    factory = f"crf_{begin.task}"
    nlp = blank(begin.lang, factory)
    nlp.add_pipe("sentencizer")
    nlp.add_pipe(factory, name=begin.task, config={"model": _TINY})
    nlp.config["initialize"]["components"][begin.task] = {"labels": labels}
    nlp.initialize()
    return nlp


def first_model(
    begin: Beginning, docs: Sequence[Doc], labels: Sequence[str], gpu_id: int = -1
) -> tuple[Language, int]:
    """Make the pipeline of the config that `init config` chooses, with untrained weights.

    The vocabulary is that of the docs to learn from, which may lack some of the labels. Returns the
    pipeline, and the number of updates to train it.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.spacy"
        write_docbin(docs, path)
        config, _ = make_config(
            begin.task, path, path, begin.vectors, "accuracy", begin.base, begin.lang, True
        )
        component = config["components"][begin.task]
        if begin.task == "ner":
            component["incorrect_spans_key"] = INCORRECT
        config["initialize"]["components"] = {begin.task: {"labels": list(labels)}}
        config["initialize"]["after_init"] = None
        nlp = initialize(path, config.interpolate(), gpu_id)
    whole = nlp.config.interpolate()["training"]
    nlp.config["paths"].update(train=None, dev=None)
    steps: Any = whole["max_steps"] or MOST_STEPS
    return nlp, min(math.ceil(steps), MOST_STEPS)
