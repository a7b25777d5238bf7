"""The files of each corpus in a project, so that one variable can name the corpus."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from spacy_psa.errors import InputError


class Part:
    """One part of a corpus: train, dev or test.

    Args:
        file: its path in the project's folder `assets`.
        form: its format, if it is not that of the layout.
        more_files: further files in `assets` that its conversion needs, by option.
        options: the options of its conversion; see `corpora.conversion`.
    """

    def __init__(
        self, file: str, form: str = "", more_files: Mapping[str, str] = {}, **options: Any
    ) -> None:
        self.file = file
        self.form = form
        self.more_files = more_files
        self.options = options

    def files(self) -> list[PurePosixPath]:
        """List the files of the part."""
        return [PurePosixPath(name) for name in (self.file, *self.more_files.values())]


@dataclass(frozen=True)
class Layout:
    """The files of a corpus, and how `spacy-psa prepare` converts them."""

    format: str
    """The subcommand of `spacy-psa convert`."""
    tasks: tuple[str, ...]
    """The tasks that the corpus is annotated for: folders of `configs`, the usual one first."""
    train: Part
    dev: Part
    test: Part
    lang: str = "en"
    """The language of the documents, as for spacy.blank."""
    vectors: str | None = None
    """An archive of GloVe vectors to train with, in the project's folder `assets`."""
    more: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    """Further parts by name, which may be missing: the sources of each, the best first."""

    def files(self) -> list[PurePosixPath]:
        """List all files that the corpus needs."""
        parts = [file for part in (self.train, self.dev, self.test) for file in part.files()]
        vectors = [PurePosixPath(self.vectors)] if self.vectors else []
        return list(dict.fromkeys(parts + vectors))


GLOVE = "glove/glove.6B.zip"
CONLL2000 = "conll2000/conll2000.zip"
ONTONOTES = "ontonotes/conll-2012-en.tar.xz"
WSJ = "wsj/conll-2012-en.tar.xz"
WIKIGOLD = "wikigold/wikigold.conll.txt"
CLEAN = "cleanconll/cleanconll"
WSJ_TREES = "wsj_trees/conll-2012-en.tar.xz"
GUM = "gum/gum.tar.xz"


def _corrected(part: str, words: str) -> tuple[Part, Part]:
    """A part of CleanCoNLL: joined, or as it is published, to be joined with CoNLL-2003."""
    more_files = {"words": f"conll2003/{words}", "patch": f"cleanconll/{part}_tokens.patch"}
    published = Part(f"{CLEAN}_annotations.{part}", "cleanconll", more_files)
    return Part(f"{CLEAN}.{part}", "cleanconll"), published


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
        # Corrected annotation of the same texts, and news of 2020 by the same guidelines.
        more={
            "dev_clean": _corrected("dev", "eng.testa"),
            "test_clean": _corrected("test", "eng.testb"),
            "test_pp": (Part("conllpp/conllpp_test.txt"),),
            "test_2020": (Part("conllpp/conll2020.txt", "columns", ner=3),),
        },
    ),
    # The corpus has no development set; 1,000 sentences of the training set are drawn for it.
    "conll2000": Layout(
        "conll2000",
        ("chunker", "tagger"),
        Part(CONLL2000, member="train.txt", dev=1000, part="train"),
        Part(CONLL2000, member="train.txt", dev=1000, part="dev"),
        Part(CONLL2000, member="test.txt"),
        vectors=GLOVE,
    ),
    "ontonotes": Layout(
        "ontonotes",
        ("ner", "tagger", "parser"),
        Part(ONTONOTES, folder="v4/data/train"),
        Part(ONTONOTES, folder="v4/data/development"),
        Part(ONTONOTES, folder="v4/data/test"),
        vectors=GLOVE,
    ),
    # The sections that are usual for part-of-speech tagging.
    "wsj": Layout(
        "ontonotes",
        ("tagger", "ner", "parser"),
        Part(WSJ, sections="00-18"),
        Part(WSJ, sections="19-21"),
        Part(WSJ, sections="22-24"),
        vectors=GLOVE,
    ),
    # The sections that are usual for parsing.
    "wsj_trees": Layout(
        "ontonotes",
        ("parser",),
        Part(WSJ_TREES, sections="02-21"),
        Part(WSJ_TREES, sections="22"),
        Part(WSJ_TREES, sections="23"),
    ),
    "gum": Layout(
        "gum",
        ("ner", "tagger", "chunker", "parser", "spans"),
        Part(GUM, part="train"),
        Part(GUM, part="dev"),
        Part(GUM, part="test"),
        vectors=GLOVE,
        more={"test2": (Part(GUM, part="test2"),)},
    ),
    "wnut17": Layout(
        "columns",
        ("ner",),
        Part("wnut17/wnut17train.conll", ner=1),
        Part("wnut17/emerging.dev.conll", ner=1),
        Part("wnut17/emerging.test.annotated", ner=1),
        vectors=GLOVE,
    ),
    # One file of 145 documents; a tenth of them is drawn for development and for test.
    "wikigold": Layout(
        "columns",
        ("ner",),
        Part(WIKIGOLD, ner=1, draw=0.1, part="train"),
        Part(WIKIGOLD, ner=1, draw=0.1, part="dev"),
        Part(WIKIGOLD, ner=1, draw=0.1, part="test"),
        vectors=GLOVE,
    ),
    "resume": Layout(
        "bmes",
        ("ner",),
        Part("resume/train.char.bmes"),
        Part("resume/dev.char.bmes"),
        Part("resume/test.char.bmes"),
        lang="zh",
    ),
    "weibo": Layout(
        "bmes",
        ("ner",),
        Part("weibo/weiboNER_2nd_conll.train"),
        Part("weibo/weiboNER_2nd_conll.dev"),
        Part("weibo/weiboNER_2nd_conll.test"),
        lang="zh",
    ),
}


def is_own(corpus: str) -> bool:
    """Tell whether a corpus is a folder with own files, and not a known one."""
    return corpus not in LAYOUTS and Path(corpus).is_dir()


def layout(corpus: str) -> Layout:
    """Return the layout of a corpus."""
    if corpus not in LAYOUTS:
        raise InputError(
            f"unknown corpus {corpus!r}; choose from {', '.join(LAYOUTS)}, or name a folder"
        )
    return LAYOUTS[corpus]
