"""Files with a token and its tags in each row that are not plain columns: the rows of each format.

- CSV with a header, such as Kaggle's `Sentence #,Word,POS,Tag`.
- CoNLL-U, with entities in the last column: `ner=B-PER`.
- WebAnno TSV 3, also of INCEpTION.
- A sentence on each line: `Ada|NNP|B-PER left|VBD|O`.
- JSON of Hugging Face data sets: `{"tokens": ["Ada", "left"], "ner_tags": [1, 0]}`.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from spacy_psa.corpora.columns import Row, Sentence
from spacy_psa.corpora.json_records import label_names, read_records
from spacy_psa.corpora.lines import read_lines
from spacy_psa.corpora.tag_schemes import form_of
from spacy_psa.errors import InputError

Rows = Callable[[Path, Counter[str], list[str]], Iterator[Sentence]]
"""Reads the sentences of a file: path, repairs, and the faults of sentences that are left out."""
TOKENS = ("tokens", "words", "tokenized_text")
TAGS = ("ner_tags", "ner", "ner_labels", "entity_tags", "tags", "labels")
"""Keys of the tags of entities, in the order in which they are looked for."""
STACKED = "stacked entities, of which the first is read"
PARTS_OF_TOKENS = "row(s) of a part of a token, left out"
_MISC = re.compile(r"(?:^|\|)(?:ner|ne|namedentity|entity_type)=([^|]*)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_WEBANNO = re.compile(r"(?P<value>(?:\\.|[^\[|\\])*)(?:\[(?P<id>\d+)\])?")
_LOOK = 50
"""The number of lines by which a format is recognised."""


def rows_of(path: Path) -> tuple[str, Rows] | None:
    """Recognise the format of a file by its first lines; None for plain columns."""
    lines = [text for _, text in islice(read_lines(path, Counter()), _LOOK) if text.strip()]
    if not lines:
        return None
    if lines[0].startswith("#FORMAT=WebAnno TSV"):
        return "WebAnno TSV", read_webanno
    first = next((line for line in lines if not line.startswith("#")), lines[0])
    cells = first.split("\t")
    if len(cells) == 10 and cells[0] in ("1", "1-2") and (cells[6] == "_" or cells[6].isdigit()):
        return "CoNLL-U", read_conllu
    if ".csv" in path.suffixes or "sentence" in lines[0].lower().split("\t")[0]:
        return "CSV", read_csv
    bars = {token.count("|") for token in first.split(" ")}
    if "\t" not in first and len(bars) == 1 and 0 not in bars and not first.startswith("|"):
        return "word|tag lines", read_bars
    return None


def _sentences(
    path: Path, rows: Iterator[tuple[object, int, list[str]]], faults: list[str]
) -> Iterator[Sentence]:
    """Join rows with the same key; a row with a blank word is a fault of its sentence."""
    last: object = None
    sentence: list[Row] = []
    whole, count, empty = True, 0, True
    for key, line, columns in rows:
        if key != last and sentence:
            if whole:
                empty = False
                yield Sentence(None, sentence)
            sentence, whole = [], True
        last, count = key, count or len(columns)
        if len(columns) != count or not all(columns):
            faults.append(
                f"{path}:{line}: {len(columns)} column(s) instead of {count}; correct the line"
                if len(columns) != count
                else f"{path}:{line}: column {columns.index('')} of {count} is blank; correct it"
            )
            whole = False
        sentence.append(Row(line, columns))
    if sentence and whole:
        empty = False
        yield Sentence(None, sentence)
    if empty and faults:
        raise InputError(faults[0])
    if empty:
        raise InputError(f"{path}:1: no sentences in the file; check that it is complete")


def read_csv(path: Path, repairs: Counter[str], faults: list[str]) -> Iterator[Sentence]:
    """Yield the sentences of a CSV file with a header.

    A column with `sentence` in its head begins a sentence where its value is another one than
    before; otherwise rows without values do.
    """
    numbers: list[int] = []

    def texts() -> Iterator[str]:
        for number, text in read_lines(path, repairs):
            numbers.append(number)
            yield text + "\n"

    lines = texts()
    head = next(lines, "")
    comma = max("\t;,", key=head.count)
    names = [name.strip().lower() for name in next(csv.reader([head], delimiter=comma))]
    if any(form_of(name.upper()) == "B-TYPE" or name == "o" for name in names):
        raise InputError(f"{path}:1: has no header; add a line such as `word,tag`")
    keys = [i for i, name in enumerate(names) if "sentence" in name or name == "sent_id"]
    used = [i for i, name in enumerate(names) if i not in keys and name not in ("", "index")]

    def rows() -> Iterator[tuple[object, int, list[str]]]:
        sentence = 0
        last = ""
        for cells in csv.reader(lines, delimiter=comma):
            if not any(cell.strip() for cell in cells):
                sentence += 1
                continue
            key = "".join(cells[i].strip() for i in keys if i < len(cells))
            if key and key != last:
                sentence, last = sentence + 1, key
            right = len(cells) == len(names)
            columns = [cells[i].strip() for i in used] if right else cells
            yield sentence, numbers[-1], columns

    return _sentences(path, rows(), faults)


def read_conllu(path: Path, repairs: Counter[str], faults: list[str]) -> Iterator[Sentence]:
    """Yield the words, parts of speech and, if the file has them, entities of CoNLL-U.

    Words are the syntactic ones; the rows 1-2 and 1.1 are left out.
    """
    misc = (text.rpartition("\t")[2] for _, text in read_lines(path, Counter()))
    entities = any(map(_MISC.search, misc))

    def rows() -> Iterator[tuple[object, int, list[str]]]:
        sentence = 0
        for number, text in read_lines(path, repairs):
            if not text.strip():
                sentence += 1
            if not text.strip() or text.startswith("#"):
                continue
            cells = text.split("\t")
            if len(cells) != 10:
                yield sentence, number, cells
            elif cells[0].isdigit():
                _, word, _, universal, tag, _, _, _, _, misc = cells
                match = _MISC.search(misc)
                ner = [match[1] if match and match[1] not in ("", "_") else "O"] if entities else []
                yield sentence, number, [word, universal if tag == "_" else tag, *ner]

    return _sentences(path, rows(), faults)


def read_webanno(path: Path, repairs: Counter[str], faults: list[str]) -> Iterator[Sentence]:
    """Yield the words and entities of WebAnno TSV 3, and parts of speech if it has them.

    Entities are the values of the layer NamedEntity or, without one, of the first layer of spans
    that is not of tokens.
    """
    layers = _webanno_layers(path)
    spans = {name: place for name, (kind, place) in layers.items() if kind == "SP"}
    tokens = ("POS", "Lemma", "MorphologicalFeatures", "Stem", "Token", "Sentence")
    named = [name for name in spans if name.rpartition(".")[2].split("|")[0] == "NamedEntity"]
    named.sort(key=lambda name: not name.endswith("|value"))
    others = [name for name in spans if name.split("|")[0].rpartition(".")[2] not in tokens]
    poses = [name for name in spans if name.endswith(".POS|PosValue")]
    if not named + others:
        raise InputError(f"{path}:1: has no layer with spans; export the layer NamedEntity")
    ner, pos = spans[(named + others)[0]], spans[poses[0]] if poses else None

    def rows() -> Iterator[tuple[object, int, list[str]]]:
        last: tuple[str, str] = ("", "")
        for number, text in read_lines(path, repairs):
            if not text or text.startswith("#"):
                continue
            cells = text.split("\t")
            sentence, _, token = cells[0].partition("-")
            if "." in token:
                repairs[PARTS_OF_TOKENS] += 1
                continue
            if len(cells) <= max(ner, pos or 0):
                yield sentence, number, cells
                continue
            tag, last = _webanno_tag(cells[ner], (sentence, *last)[-2:], repairs)
            tags = [] if pos is None else [cells[pos].split("|")[0]]
            yield sentence, number, [cells[2], *tags, tag]

    return _sentences(path, rows(), faults)


def _webanno_layers(path: Path) -> dict[str, tuple[str, int]]:
    """Find the kind and column of each feature in the head of a file; columns 0 to 2 are tokens."""
    layers: dict[str, tuple[str, int]] = {}
    place = 3
    for _, text in islice(read_lines(path, Counter()), _LOOK):
        if text.startswith("#T_"):
            kind, _, rest = text[3:].partition("=")
            layer, *features = rest.split("|")
            for feature in features or [""]:
                layers[f"{layer}|{feature}"] = kind, place
                place += 1
    return layers


def _webanno_tag(
    cell: str, last: Sequence[str], repairs: Counter[str]
) -> tuple[str, tuple[str, str]]:
    """Return the tag of a value, and its label and number, by which the next row continues it."""
    if cell == "_":
        return "O", ("", "")
    match = _WEBANNO.match(cell)
    assert match is not None
    if cell[match.end() :].startswith("|"):
        repairs[STACKED] += 1
    label, number = re.sub(r"\\(.)", r"\1", match["value"]), match["id"] or ""
    if label == "*":
        return "?", ("", "")
    continues = bool(number) and (label, number) == tuple(last)
    return f"{'I' if continues else 'B'}-{label}", (label, number)


def read_bars(path: Path, repairs: Counter[str], faults: list[str]) -> Iterator[Sentence]:
    """Yield the sentences of lines whose tokens are between blanks, and columns between bars."""
    return _sentences(
        path,
        (
            (number, number, token.split("|"))
            for number, text in read_lines(path, repairs)
            for token in text.split()
        ),
        faults,
    )


def has_tags(record: Any) -> bool:
    """Tell whether a record of JSON has tokens and a tag for each."""
    return isinstance(record, dict) and _tags(record) is not None


def _tags(record: dict[str, Any]) -> tuple[str, str] | None:
    """Return the keys of the tokens and of their tags."""
    tokens = next((key for key in TOKENS if isinstance(record.get(key), list)), None)
    if tokens is None:
        return None
    length = len(record[tokens])
    lists = (key for key in TAGS if isinstance(record.get(key), list) and key != tokens)
    right = (key for key in lists if len(record[key]) == length)
    tags = (key for key in right if all(isinstance(each, str | int) for each in record[key]))
    key = next(tags, None)
    return None if key is None else (tokens, key)


def read_tagged(
    path: Path, repairs: Counter[str], faults: list[str], names: Sequence[str] = ()
) -> Iterator[Sentence]:
    """Yield the tokens and tags of records of JSON.

    Numbers are tags by their `names`, or by those in the file or in `dataset_info.json` next to it.

    Raises:
        InputError: if there are numbers without names.
    """
    names = names or label_names(path)
    for i, (place, record) in enumerate(read_records(path, repairs, faults), 1):
        keys = _tags(record) if isinstance(record, dict) else None
        if keys is None:
            faults.append(f"{place}: has no tokens with as many tags; correct the record")
            continue
        tokens, tags = (record[key] for key in keys)
        if any(isinstance(tag, int) for tag in tags):
            if not names or max(tags) >= len(names):
                raise InputError(
                    f"{place}: {keys[1]!r} has numbers; name them in their order with "
                    "--label O,B-PER,I-PER and so on"
                )
            tags = [names[tag] for tag in tags]
        number = _NUMBER.findall(place.rpartition(":")[2]) or [i]
        words = [str(token) if str(token).strip() else "\u2423" for token in tokens]
        if words:
            yield Sentence(None, [Row(int(number[0]), list(row)) for row in zip(words, tags)])
