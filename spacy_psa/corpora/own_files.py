"""Finds the files of a corpus in a folder, and the format of each."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from spacy_psa.corpora import (
    any_columns,
    brat,
    conllu,
    dataturks,
    doccano,
    json_tokens,
    label_studio,
    prodigy,
    spacy_jsonl,
    uima_xmi,
)
from spacy_psa.corpora.json_records import check_whole, read_records
from spacy_psa.corpora.marked_text import MarkedText
from spacy_psa.corpora.token_rows import Rows, has_tags, read_tagged, rows_of
from spacy_psa.errors import InputError

PARTS = {
    "train": ("train", "training", "trn", "trainset"),
    "dev": ("dev", "devel", "development", "devset", "valid", "validation", "val", "testa"),
    "test": ("test", "testing", "testset", "testb"),
}
"""Each part and the words in names of files and folders that mean it."""
COLUMNS = {".conll", ".iob", ".iob2", ".bio", ".bioes", ".bmes", ".tsv", ".col", ".conllu", ".csv"}
NOT_CORPORA = {".md", ".rst", ".cfg", ".yml", ".yaml", ".toml", ".py", ".pdf", ".html", ".ann"}
DESCRIPTIONS = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
"""Files of a data set without texts."""
JSON = {".json": "JSON", ".jsonl": "JSONL", ".ndjson": "JSONL", ".jl": "JSONL"}
READERS: dict[str, Any] = {
    "Label Studio": label_studio,
    "Prodigy": prodigy,
    "Dataturks": dataturks,
    "doccano": doccano,
    "tokens with spans": json_tokens,
    "spaCy": spacy_jsonl,
}
"""Readers of records, in the order in which they are asked whether they accept one."""
TAGGED = "tokens with tags"
NAMES = (
    "spaCy JSONL or DocBin, Prodigy, Label Studio, doccano, Dataturks, brat, WebAnno TSV, UIMA "
    "XMI, JSON of tokens, CSV, CoNLL-U or columns"
)
RELATIONS = "relation(s), left out"
BY_PYTHON = {
    ".parquet": "import pandas; pandas.read_parquet('{name}').to_json('{stem}.jsonl', "
    "orient='records', lines=True)",
    ".arrow": "import datasets; datasets.Dataset.from_file('{name}').to_json('{stem}.jsonl')",
    ".xlsx": "import pandas; pandas.read_excel('{name}').to_csv('{stem}.csv', index=False)",
    ".pkl": "import json, pickle; json.dump(pickle.load(open('{name}', 'rb')), "
    "open('{stem}.json', 'w'))",
}
"""Lines of Python that convert files by the ending of their names."""
TO_JSONL = (
    "write each text with its entities: print(json.dumps({'text': text, 'ents': [{'start': s, "
    "'end': e, 'label': label} for s, e, label in entities]}), file=open('train.jsonl', 'a'))"
)


@dataclass(frozen=True)
class OwnFile:
    """A file of a corpus."""

    path: Path
    part: str | None
    """train, dev, test, or None if its name has none of them."""
    format: str
    """The name of its format."""
    rows: Rows | None = None
    """Reads a file with a token and its tags in each row."""
    reader: Any = None
    """The module that reads a file with marked text; `DocBin` has neither."""

    def texts(self, repairs: Counter[str], faults: list[str]) -> Iterator[MarkedText]:
        """Yield the texts of a file with marked text; `faults` gets records of another form."""
        if self.reader in (brat, uima_xmi):
            yield from self.reader.read_texts(self.path, repairs)
            return
        texts = self._of_records(repairs, faults)
        yield from prodigy.joined(texts, repairs) if self.reader is prodigy else texts

    def _of_records(self, repairs: Counter[str], faults: list[str]) -> Iterator[MarkedText]:
        for record in read_records(self.path, repairs, faults):
            content = record[1] if isinstance(record[1], dict) else {}
            if isinstance(relations := content.get("relations"), list) and relations:
                repairs[RELATIONS] += len(relations)
            try:
                yield from self.reader.read_texts([record], repairs)
            except InputError as error:
                faults.append(str(error))


def own_files(folder: Path, names: Sequence[str] = ()) -> tuple[list[OwnFile], list[str]]:
    """Find the files of a corpus in a folder and the folders in it; hidden ones are left out.

    Returns them, and a message about each file that is not of the corpus, both by name. `names` are
    those of tags that are numbers, in their order.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; check the path")
    files, others = [], []
    advice = ""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue
        file = recognise(path, part_of(inside), names)
        line = BY_PYTHON.get(path.suffix.lower(), "").format(name=path, stem=path.with_suffix(""))
        advice = advice or line
        if file:
            files.append(file)
        elif path.suffix != ".ann" or not path.with_suffix(".txt").is_file():
            how = f"convert it in Python: {line}" if line else "is not a file of a corpus, left out"
            others.append(f"{path}: {how}")
    if not files:
        how = f"convert the files in Python: {advice or TO_JSONL}"
        raise InputError(f"{folder}: has no file that is {NAMES}; {how}")
    return files, others


def part_of(path: Path) -> str | None:
    """Return the part of a corpus that the name of a file, or else of its folder, means."""
    for name in reversed(path.parts):
        words = re.findall("[a-z]+", name.lower())
        for part, known in PARTS.items():
            if any(word in known for word in words):
                return part
    return None


def recognise(path: Path, part: str | None = None, names: Sequence[str] = ()) -> OwnFile | None:
    """Find the format of a file by its name and content; None if it is not of a corpus."""
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix in NOT_CORPORA or suffix in BY_PYTHON or path.name in DESCRIPTIONS:
        return None
    if suffix == ".spacy":
        return OwnFile(path, part, "DocBin")
    if suffix in JSON:
        name = _json_format(path)
        if name == TAGGED:
            rows = partial(read_tagged, names=names)
            return OwnFile(path, part, f"{JSON[suffix]} of {name}", rows)
        return OwnFile(path, part, f"{name} {JSON[suffix]}", reader=READERS[name])
    if suffix == ".xmi":
        return OwnFile(path, part, "UIMA XMI", reader=uima_xmi)
    if brat.annotation_of(path).is_file():
        return OwnFile(path, part, "brat", reader=brat)
    if suffix == ".conllu" and conllu.has_entities(path):
        return OwnFile(path, part, "CoNLL-U with nested entities", reader=conllu)
    known = rows_of(path)
    if known:
        return OwnFile(path, part, *known)
    if suffix in COLUMNS or part or _may_be_columns(path):
        return OwnFile(path, part, "columns", any_columns.read_sentences)
    return None


def _json_format(path: Path) -> str:
    """Return the name of the format that most records of a file have."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    start = ""
    for place, record in read_records(path, Counter(), faults):
        start = start or f"{place}: {json.dumps(record)[:60]}"
        counts.update(name for name, reader in READERS.items() if reader.accepts(record))
        counts[TAGGED] += has_tags(record)
    if not counts.total():
        if faults and ".json" in path.suffixes:
            check_whole(path)
        if faults:
            raise InputError(faults[0])
        if '"paragraphs"' in start:
            raise InputError(
                f"{path}: is the JSON of spaCy 2; convert it: python -m spacy convert {path} "
                f"{path.parent}"
            )
        raise InputError(
            f"{start or f'{path}:1: the file'} is not a record of {', '.join(READERS)} or "
            f"{TAGGED}; {TO_JSONL}"
        )
    return max((TAGGED, *READERS), key=lambda name: counts[name])


def _may_be_columns(path: Path) -> bool:
    """Look at the columns of a file whose name does not show the format."""
    try:
        any_columns.find_columns(path)
    except InputError:
        return False
    return True
