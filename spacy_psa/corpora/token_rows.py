"""Files with a token and its tags in each row that are not plain columns: the rows of each format.

- CSV with a header, such as Kaggle's `Sentence #,Word,POS,Tag`.
- CoNLL-U, with entities in the last column: `ner=B-PER`, `name=B-PER` or `B-PER`.
- WebAnno TSV 1 to 3, also of INCEpTION.
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

from spacy_psa.corpora.columns import Row, Sentence, group_rows
from spacy_psa.corpora.conllu import EMPTY, split_row
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
NO_TOKENS = "record(s) without tokens, left out"
BLANK = "\u2423"
BLANKS = f"blank token(s), read as {BLANK}"
PARTS_OF_TOKENS = "row(s) of a part of a token, left out"
_MISC = re.compile(
    r"(?:^|\|)(?:(?i:ner|ne|namedentity|entity_type)=([^|]*)"
    r"|(?:name=)?([BIESLU]-[^|=]+|O)(?=\||$))"
)
_LAST_NUMBER = re.compile(r"\d+$")
_WEBANNO = re.compile(r"(?P<value>(?:\\.|[^\[|\\])*)(?:\[(?P<id>\d+)\])?")
_WEBANNO_2 = re.compile(r"\s*#\s*\w+(\.\w+)+\s*\|")
_WEBANNO_1 = "#.Lemma|value#.POS|PosValue#.NamedEntity|value#.Dependency|1|2|3|4|AttachTo="
"""The columns of WebAnno TSV 1, as a head of version 2 would name them."""
_SPAN_1 = re.compile(r"[BI][-_][^|]+(\|.*)?|O(\|.*)?|[-_]")
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
    if _WEBANNO_2.match(lines[0]) or _is_webanno_1(lines):
        return "WebAnno TSV", read_webanno
    if len(cells) == 10 and cells[0] in ("1", "1-2") and (cells[6] == "_" or cells[6].isdigit()):
        return "CoNLL-U", read_conllu
    if ".csv" in path.suffixes or "sentence" in lines[0].lower().split("\t")[0]:
        return "CSV", read_csv
    bars = {token.count("|") for token in first.split(" ")}
    if "\t" not in first and len(bars) == 1 and 0 not in bars and not first.startswith("|"):
        return "word|tag lines", read_bars
    return None


def _is_webanno_1(lines: Sequence[str]) -> bool:
    """Tell WebAnno TSV 1, with entities in the fifth column, from CoNLL-U."""
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    spans = [row[4] for row in rows if len(row) == 10 and row[0].isdecimal()]
    named = any(span[0] in "BI" for span in spans if span) or lines[0].startswith("#id=")
    return bool(spans) and len(spans) == len(rows) and named and all(map(_SPAN_1.fullmatch, spans))


def _filled(place: str, columns: list[str]) -> list[str]:
    """Return columns; raise an InputError if one is blank."""
    if "" in columns:
        blank = columns.index("")
        raise InputError(f"{place}: column {blank} of {len(columns)} is blank; correct it")
    return columns


def _check_count(place: str, cells: list[str], count: int) -> None:
    if len(cells) != count:
        raise InputError(f"{place}: {len(cells)} column(s) instead of {count}; correct the line")


def _marks_are_words(path: Path, comma: str) -> bool:
    """Whether a cell between tabs is only a quotation mark, so that none of them quotes."""
    lines = (text.split("\t") for _, text in read_lines(path, Counter()))
    return comma == "\t" and any('"' in cells for cells in lines)


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

    def rows() -> Iterator[tuple[int, list[str]]]:
        last = ""
        plain = _marks_are_words(path, comma)
        quoting: Any = csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL
        reader = csv.reader(lines, delimiter=comma, quoting=quoting)
        while True:
            begins = len(numbers)
            try:
                cells = [cell.strip() for cell in next(reader)]
            except StopIteration:
                return
            except csv.Error as error:
                line = numbers[begins]
                raise InputError(
                    f"{path}:{line}: cannot be read ({error}); check its quotes"
                ) from error
            if any("\n" in cell for cell in cells):
                raise InputError(
                    f"{path}:{numbers[begins]}: a cell goes over several lines; check its quotes"
                )
            # A malformed row begins no sentence, so that none is kept without its end.
            key = "".join(cells[i] for i in keys) if len(cells) == len(names) else last
            if key and key != last:
                last = key
                yield 0, []
            yield numbers[-1], cells if any(cells) else []

    def split(number: int, cells: list[str], begins: bool) -> list[str]:
        place = f"{path}:{number}"
        _check_count(place, cells, len(names))
        return _filled(place, [cells[i] for i in used])

    return group_rows(str(path), rows(), split, faults=faults)


def read_conllu(path: Path, repairs: Counter[str], faults: list[str]) -> Iterator[Sentence]:
    """Yield the words, parts of speech and, if the file has them, entities of CoNLL-U.

    Words are the syntactic ones; rows of words that are written as one (1-2) and empty nodes (1.1)
    are left out, and the latter counted.
    """
    misc = (text.rpartition("\t")[2] for _, text in read_lines(path, Counter()))
    entities = any(map(_MISC.search, misc))

    def split(number: int, text: str, begins: bool) -> list[str] | None:
        if text.startswith("#"):
            return None
        place = f"{path}:{number}"
        try:
            row = split_row(text)
        except ValueError as error:
            raise InputError(f"{place}: {error}; correct the line") from error
        if not row.number.isdecimal():
            repairs.update([EMPTY] if "." in row.number else [])
            return None
        match = _MISC.search(row.misc)
        tag = match and (match[1] or match[2])
        ner = [tag if tag not in (None, "", "_") else "O"] if entities else []
        return _filled(place, [row.word, row.tag, *ner])

    return group_rows(str(path), read_lines(path, repairs), split, faults=faults)


def read_webanno(path: Path, repairs: Counter[str], faults: list[str]) -> Iterator[Sentence]:
    """Yield the words and entities of WebAnno TSV 1 to 3, and parts of speech if it has them.

    Entities are the values of the layer NamedEntity or, without one, of the first layer of spans
    that is not of tokens. The other layers are named in `repairs`.
    """
    word, layers = _webanno_layers(path)
    tokens = ("POS", "Lemma", "MorphologicalFeatures", "Stem", "Token", "Sentence")
    others = {name: place for name, place in layers.items() if _layer_of(name) not in tokens}
    spans = [name for name in others if others[name][0] == "SP"]
    named = [name for name in spans if _layer_of(name) == "NamedEntity"]
    named.sort(key=lambda name: not name.endswith("|value"))
    if not spans:
        raise InputError(f"{path}:1: has no layer with spans; export the layer NamedEntity")
    chosen = (named + spans)[0]
    ner = layers[chosen][1]
    pos = next((place for name, (_, place) in layers.items() if name.endswith(".POS|PosValue")), 0)
    if left := {*map(_layer_of, others)} - {_layer_of(chosen)}:
        repairs[f"layer(s) left out ({', '.join(sorted(left))})"] = len(left)
    count = word + 1 + len(layers)
    last = ("", "")

    def split(number: int, text: str, begins: bool) -> list[str] | None:
        nonlocal last
        if text.lstrip(" ").startswith("#"):
            return None
        cells = text.split("\t")[:count]
        if "." in cells[0].partition("-")[2]:
            repairs[PARTS_OF_TOKENS] += 1
            return None
        place = f"{path}:{number}"
        _check_count(place, cells, count)
        if word == 2:
            tag, last = _webanno_tag(cells[ner], last, repairs)
        else:
            tag = _webanno_bio(cells[ner], chosen.partition("|")[0], repairs)
        return _filled(place, [cells[word], *([cells[pos].split("|")[0]] if pos else []), tag])

    return group_rows(str(path), read_lines(path, repairs), split, faults=faults)


def _layer_of(name: str) -> str:
    """Return the short name of a layer: POS of "de.tudarmstadt.….type.pos.POS|PosValue"."""
    return name.partition("|")[0].rpartition(".")[2]


def _webanno_layers(path: Path) -> tuple[int, dict[str, tuple[str, int]]]:
    """Find the column of the words, and the kind and column of each feature."""
    head = [text for _, text in islice(read_lines(path, Counter()), _LOOK)]
    if head[0].startswith("#FORMAT"):
        word = 2
        lines = [text[3:].partition("=") for text in head if text.startswith("#T_")]
        kinds = [(kind, layer if "|" in layer else f"{layer}|") for kind, _, layer in lines]
    else:
        word = 1
        line = next((text for text in head if _WEBANNO_2.match(text)), _WEBANNO_1)
        names = ["|".join(map(str.strip, layer.split("|"))) for layer in line.split("#")[1:]]
        kinds = [("RL" if "AttachTo=" in layer else "SP", layer) for layer in names]
    columns = [
        (f"{layer.partition('|')[0]}|{feature}", kind)
        for kind, layer in kinds
        for feature in layer.split("|")[1:]
    ]
    return word, {name: (kind, i) for i, (name, kind) in enumerate(columns, word + 1)}


def _webanno_tag(
    cell: str, last: tuple[str, str], repairs: Counter[str]
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
    continues = bool(number) and (label, number) == last
    return f"{'I' if continues else 'B'}-{label}", (label, number)


def _webanno_bio(cell: str, layer: str, repairs: Counter[str]) -> str:
    """Return the tag of a value of the versions 1 and 2: B-PER, B_PER, PER, or that of no span."""
    value, bar, _ = cell.partition("|")
    repairs.update([STACKED] if bar else [])
    if value in ("_", "-", "O", "O-_", "B-_", "I-_"):
        return "O"
    tag = f"{value[0]}-{value[2:]}" if re.match("[BI][-_].", value) else f"B-{value}"
    return "?" if tag[2:] == f"{layer}_" else tag


def read_bars(path: Path, repairs: Counter[str], faults: list[str]) -> Iterator[Sentence]:
    """Yield the sentences of lines whose tokens are between blanks, and columns between bars."""
    count = 0

    def tokens() -> Iterator[tuple[int, str]]:
        for number, text in read_lines(path, repairs):
            yield from ((number, token) for token in text.split())
            yield number, ""

    def split(number: int, token: str, begins: bool) -> list[str]:
        nonlocal count
        columns, place = token.split("|"), f"{path}:{number}"
        count = count or len(columns)
        _check_count(place, columns, count)
        return _filled(place, columns)

    return group_rows(str(path), tokens(), split, faults=faults)


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
    """
    names = names or label_names(path)
    for place, record in read_records(path, repairs, faults):
        keys = _tags(record) if isinstance(record, dict) else None
        if keys is None:
            faults.append(f"{place}: has no tokens with as many tags; correct the record")
            continue
        tokens, tags = (record[key] for key in keys)
        numbers = [tag for tag in tags if isinstance(tag, int)]
        if numbers:
            if not all(0 <= number < len(names) for number in numbers):
                raise InputError(
                    f"{place}: {keys[1]!r} has numbers; name them in their order with "
                    "--label O,B-PER,I-PER and so on"
                )
            tags = [names[tag] if isinstance(tag, int) else tag for tag in tags]
        if not tokens:
            repairs[NO_TOKENS] += 1
            continue
        words = list(map(str, tokens))
        for i, word in enumerate(words):
            if not word.strip():
                words[i] = BLANK
                repairs[BLANKS] += 1
        (line,) = _LAST_NUMBER.findall(place)
        yield Sentence(None, [Row(int(line), list(row)) for row in zip(words, tags)])
