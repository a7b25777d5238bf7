"""Which files a project needs for a corpus, so that one variable can name it."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from spacy_psa.errors import InputError


@dataclass(frozen=True)
class Part:
    """One of train, dev and test."""

    file: str
    """Path in the project's folder `assets`."""
    options: tuple[str, ...] = ()
    """Of `spacy-psa convert`, besides the files."""


@dataclass(frozen=True)
class Layout:
    """What `spacy-psa prepare` makes of a corpus."""

    format: str
    """The command of `spacy-psa convert`."""
    tasks: tuple[str, ...]
    """What its documents are annotated with: folders of `configs`, the usual one first."""
    train: Part
    dev: Part
    test: Part
    vectors: str | None = None
    """An archive of GloVe vectors to train with, in the project's folder `assets`."""

    def files(self) -> list[PurePosixPath]:
        """All that must be there."""
        names = [self.train.file, self.dev.file, self.test.file, self.vectors]
        return [PurePosixPath(name) for name in dict.fromkeys(names) if name]


GLOVE = "glove/glove.6B.zip"
CONLL2000 = "conll2000/conll2000.zip"
ONTONOTES = "ontonotes/conll-2012-en.tar.xz"
WSJ = "wsj/conll-2012-en.tar.xz"
WSJ_TREES = "wsj_trees/conll-2012-en.tar.xz"

LAYOUTS = {
    "sample": Layout(
        "sample",
        ("ner", "tagger", "chunker", "parser"),
        Part("sample/train.jsonl"),
        Part("sample/dev.jsonl"),
        Part("sample/test.jsonl"),
    ),
    "conll2003": Layout(
        "conll2003",
        ("ner", "tagger", "chunker"),
        Part("conll2003/eng.train"),
        Part("conll2003/eng.testa"),
        Part("conll2003/eng.testb"),
        vectors=GLOVE,
    ),
    # The corpus has no development set: 1,000 sentences of the training set are drawn.
    "conll2000": Layout(
        "conll2000",
        ("chunker", "tagger"),
        Part(CONLL2000, ("--member", "train.txt", "--dev", "1000", "--part", "train")),
        Part(CONLL2000, ("--member", "train.txt", "--dev", "1000", "--part", "dev")),
        Part(CONLL2000, ("--member", "test.txt")),
        vectors=GLOVE,
    ),
    "ontonotes": Layout(
        "ontonotes",
        ("ner", "tagger", "parser"),
        Part(ONTONOTES, ("--folder", "v4/data/train")),
        Part(ONTONOTES, ("--folder", "v4/data/development")),
        Part(ONTONOTES, ("--folder", "v4/data/test")),
        vectors=GLOVE,
    ),
    # Sections as for part-of-speech tagging.
    "wsj": Layout(
        "ontonotes",
        ("tagger", "ner", "parser"),
        Part(WSJ, ("--sections", "00-18")),
        Part(WSJ, ("--sections", "19-21")),
        Part(WSJ, ("--sections", "22-24")),
        vectors=GLOVE,
    ),
    # Sections as for parsing.
    "wsj_trees": Layout(
        "ontonotes",
        ("parser",),
        Part(WSJ_TREES, ("--sections", "02-21")),
        Part(WSJ_TREES, ("--sections", "22")),
        Part(WSJ_TREES, ("--sections", "23")),
    ),
    "resume": Layout(
        "bmes",
        ("ner",),
        Part("resume/train.char.bmes"),
        Part("resume/dev.char.bmes"),
        Part("resume/test.char.bmes"),
    ),
    "weibo": Layout(
        "bmes",
        ("ner",),
        Part("weibo/weiboNER_2nd_conll.train"),
        Part("weibo/weiboNER_2nd_conll.dev"),
        Part("weibo/weiboNER_2nd_conll.test"),
    ),
}


def layout(corpus: str) -> Layout:
    """Raises InputError for a corpus that is not known."""
    if corpus not in LAYOUTS:
        raise InputError(f"unknown corpus {corpus!r}; choose from {', '.join(LAYOUTS)}")
    return LAYOUTS[corpus]
