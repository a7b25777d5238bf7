"""Training data that breaks other software, and configs of small pipelines to train on it."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab
from thinc.api import Config

from tests.helpers.whole_pipelines import FACTORIES, models


def sentence(
    words: list[str],
    label: str | None = "A",
    spaces: list[bool] | None = None,
    entities: bool = True,
) -> Doc:
    """A doc with a tag for each word, and a tree, a chunk and an entity over all; None for none."""
    doc = Doc(
        Vocab(), words=words, spaces=spaces, tags=None if label is None else [label] * len(words)
    )
    if label is not None and words:
        whole = [Span(doc, 0, len(doc), label)]
        doc.set_ents(whole if entities else [])
        doc.spans["chunks"] = doc.spans["constituents"] = whole
    return doc


def good(label: str = "A") -> list[Doc]:
    return [sentence(["Ada", "met", name], label) for name in ("Evans", "Bath", "Leeds")]


def long() -> list[Doc]:
    """A doc of 5,000 tokens with a short sentence at its side."""
    words = ["Ada", "met", "Evans", "in", "Bath"] * 1000
    doc = sentence(words)
    doc.set_ents([Span(doc, i, i + 1, "A") for i in range(0, len(doc), 5)])
    return [doc, *good()]


CORPORA: dict[str, Callable[[], tuple[list[Doc], list[Doc]]]] = {
    "no docs": lambda: ([], good()),
    "no dev docs": lambda: (good(), []),
    "empty docs": lambda: ([sentence([])], good()),
    "empty docs beside others": lambda: ([sentence([]), *good(), sentence([])], good()),
    "no annotation": lambda: ([sentence(["Ada", "came"], None)], good()),
    "no annotation beside others": lambda: ([sentence(["Ada", "came"], None), *good()], good()),
    "dev docs without annotation": lambda: (good(), [sentence(["Ada", "came"], None)]),
    "dev docs without tokens": lambda: (good(), [sentence([])]),
    "one label": lambda: (good(), good()),
    "150 labels": lambda: (
        [sentence(["Ada", "met", "Evans"], f"L{i}") for i in range(150)], good("L7")
    ),
    "other tokens": lambda: (
        [sentence(["Ada", "-", "Love", "lace", "came", "do", "n't", "."], spaces=[False] * 8),
         sentence(["Ada met", "Evans in Bath"]), *good()],
        [sentence(["Ada", "-", "Love", "lace", "came"], spaces=[False] * 5)],
    ),
    "white space": lambda: ([sentence([" ", "Ada", "\n\n"]), sentence(["\n"]), *good()], good()),
    "dev docs without entities": lambda: (
        good(), [sentence(["Ada", "came"], "A", entities=False)]
    ),
    "5,000 tokens": lambda: (long(), good()),
    "5,000 dev tokens": lambda: (good(), long()),
}  # fmt: skip


def write(folder: Path, train: Iterable[Doc], dev: Iterable[Doc]) -> None:
    """Write train.spacy and dev.spacy."""
    for name, docs in (("train", train), ("dev", dev)):
        DocBin(docs=docs).to_disk(folder / f"{name}.spacy")


def config(folder: Path, names: Iterable[str], steps: int = 2) -> Path:
    """Write a config that trains components on the files in a folder."""
    nlp = spacy.blank("en")
    for factory, name in FACTORIES.items():
        if name in names:
            nlp.add_pipe(factory, name=name, config={"model": models(False)[name]})
    settings: Config = nlp.config.copy()
    for part in ("train", "dev"):
        reader: dict[str, Any] = {
            "@readers": "spacy.Corpus.v1",
            "path": str(folder / f"{part}.spacy"),
        }
        settings["corpora"][part] = reader
    settings["training"].update(max_steps=steps, eval_frequency=2)
    settings["training"]["batcher"] = {"@batchers": "spacy.batch_by_sequence.v1", "size": 4}
    settings.to_disk(folder / "config.cfg")
    return folder / "config.cfg"
