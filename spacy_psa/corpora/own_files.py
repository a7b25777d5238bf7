"""Recognises the files of a corpus: what each is written in, and the part that it is."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy_psa.corpora import brat, doccano, label_studio, prodigy, spacy_jsonl
from spacy_psa.corpora.json_records import read_records
from spacy_psa.corpora.marked_text import MarkedText
from spacy_psa.errors import InputError

PARTS = {
    "train": ("train", "training", "trn", "trainset"),
    "dev": ("dev", "devel", "development", "devset", "valid", "validation", "val", "testa"),
    "test": ("test", "testing", "testset", "testb"),
}
"""Each part and the words in names of files and folders that stand for it."""
COLUMNS = {".conll", ".iob", ".iob2", ".bio", ".bioes", ".bmes", ".tsv", ".col", ".conllu"}
NOT_CORPORA = {".md", ".rst", ".cfg", ".yml", ".yaml", ".toml", ".py", ".pdf", ".html", ".ann"}
JSON = {".json": "JSON", ".jsonl": "JSONL", ".ndjson": "JSONL", ".jl": "JSONL"}
READERS: dict[str, Any] = {
    "Label Studio": label_studio,
    "Prodigy": prodigy,
    "doccano": doccano,
    "spaCy": spacy_jsonl,
}
"""Readers of records, in the order in which they are asked whether they accept one."""
NAMES = "spaCy JSONL or DocBin, Prodigy, Label Studio, doccano, brat or columns"


@dataclass(frozen=True)
class OwnFile:
    """A file of a corpus."""

    path: Path
    part: str | None
    """train, dev, test, or None if the name does not tell."""
    format: str
    """The name of its format: `columns`, `DocBin`, or a source of marked text."""
    read: Callable[[Path, Counter[str]], Iterator[MarkedText]] | None = None
    """Reads a file with marked text."""


def own_files(folder: Path) -> tuple[list[OwnFile], list[Path]]:
    """Find the files of a corpus.

    Args:
        folder: the folder, with folders in it; hidden ones are left out.

    Returns:
        The files of the corpus, and those that are not of it, both by name.

    Raises:
        InputError: if there is no such folder, or no file in it can be read as a corpus.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; check the path")
    found, others = [], []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue
        file = _recognise(path, part_of(inside))
        if file:
            found.append(file)
        elif path.suffix != ".ann":
            others.append(path)
    if not found:
        raise InputError(f"{folder}: has no file that is {NAMES}; add one or convert your files")
    return found, others


def part_of(path: Path) -> str | None:
    """Tell from the name of a file, or else of its folder, which part of a corpus it is.

    Examples:
        >>> part_of(Path("wnut17train.conll")), part_of(Path("dev/doc1.txt"))
        ('train', 'dev')
        >>> part_of(Path("eng.testb")), part_of(Path("all.jsonl"))
        ('test', None)
    """
    for name in reversed(path.parts):
        words = re.findall("[a-z]+", name.lower())
        for part, known in PARTS.items():
            if any(word in known for word in words):
                return part
    return None


def _recognise(path: Path, part: str | None) -> OwnFile | None:
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix in NOT_CORPORA:
        return None
    if suffix == ".spacy":
        return OwnFile(path, part, "DocBin")
    if suffix in JSON:
        name = _json_format(path)
        return OwnFile(path, part, f"{name} {JSON[suffix]}", READERS[name].read_texts)
    if brat.annotation_of(path).is_file():
        return OwnFile(path, part, "brat", brat.read_texts)
    if suffix in COLUMNS or part or _may_be_columns(path):
        return OwnFile(path, part, "columns")
    return None


def _json_format(path: Path) -> str:
    _, record = next(read_records(path, Counter()), ("", None))
    for name, reader in READERS.items():
        if reader.accepts(record):
            return name
    told = json.dumps(record)[:60]
    raise InputError(f"{path}:1: {told} is no record of {', '.join(READERS)}; convert the file")


def _may_be_columns(path: Path) -> bool:
    """Look at the columns of a file whose name says nothing."""
    from spacy_psa.corpora.any_columns import find_columns

    try:
        find_columns(path)
    except InputError:
        return False
    return True
