"""Which files a project needs for a corpus, so that one variable can name it."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from spacy_psa.errors import InputError


@dataclass(frozen=True)
class Layout:
    """Paths in the project's folder `assets`."""

    train: str
    dev: str
    test: str
    vectors: str | None = None
    """An archive of GloVe vectors to train with."""

    def files(self) -> list[PurePosixPath]:
        """All that must be there."""
        names = [self.train, self.dev, self.test, self.vectors]
        return [PurePosixPath(name) for name in names if name]


GLOVE = "glove/glove.6B.zip"

LAYOUTS = {
    "sample": Layout("sample/train.jsonl", "sample/dev.jsonl", "sample/test.jsonl"),
    "conll2003": Layout(
        "conll2003/eng.train", "conll2003/eng.testa", "conll2003/eng.testb", vectors=GLOVE
    ),
}


def layout(corpus: str) -> Layout:
    """Raises InputError for a corpus that is not known."""
    if corpus not in LAYOUTS:
        raise InputError(f"unknown corpus {corpus!r}; choose from {', '.join(LAYOUTS)}")
    return LAYOUTS[corpus]
