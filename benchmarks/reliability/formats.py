"""Small files of each format that `spacy-psa convert` reads, of sentences of the sample grammar."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from scripts.sample.generator import Generator
from spacy_psa.corpora.bracketing import read_trees
from spacy_psa.corpora.tag_schemes import spans_to_tags
from spacy_psa.corpora.trees import ESCAPES

Sentence = dict[str, Any]
"""A record of the sample corpus; see `spacy_psa.corpora.jsonl`."""
DIM = 5  # numbers of a word vector


def sentences(seed: int, count: int = 5, longest: int = 12) -> list[Sentence]:
    """Draw short sentences; a word of the first sentence has a letter that is not ASCII."""
    drawn = (record for record in Generator(seed, "train") if len(record["words"]) <= longest)
    records = list(islice(drawn, count))
    first = records[0]
    word = max(first["words"], key=len)
    first["words"] = [f"{each}\u00e9" if each == word else each for each in first["words"]]
    first["tree"] = first["tree"].replace(f" {word})", f" {word}\u00e9)")
    return records


def _rows(columns: Sequence[Sequence[str]], separator: str = " ") -> str:
    return "".join(separator.join(row) + "\n" for row in zip(*columns, strict=True)) + "\n"


def conll2003(records: list[Sentence]) -> str:
    """Columns, with the tags of IOB1."""
    parts = ["-DOCSTART- -X- -X- O\n\n"]
    for record in records:
        n = len(record["words"])
        spans = [spans_to_tags(record[layer], n, "iob1") for layer in ("chunks", "ents")]
        parts.append(_rows([record["words"], record["tags"], *spans]))
    return "".join(parts)


def conll2000(records: list[Sentence]) -> str:
    """Columns, with the tags of IOB2."""
    return "".join(
        _rows([r["words"], r["tags"], spans_to_tags(r["chunks"], len(r["words"]), "iob2")])
        for r in records
    )


def ontonotes(records: list[Sentence]) -> str:
    """One document in the columns of CoNLL-2012."""
    document = "nw/wsj/02/wsj_0203"
    parts = [f"#begin document ({document}); part 000\n"]
    for record in records:
        n = len(record["words"])
        before, after = ["(TOP", *[""] * (n - 1)], [*[""] * (n - 1), ")"]
        ((_, tree),) = read_trees("tree", [(1, record["tree"])], Counter())
        for start, end, label in tree.constituents:
            before[start] += f"({label}"
            after[end - 1] += ")"
        names = ["*"] * n
        for start, end, label in record["ents"]:
            names[start] = f"({label}*"
            names[end - 1] = names[end - 1] + ")" if end - start > 1 else f"({label})"
        bits = [f"{b}*{a}" for b, a in zip(before, after)]
        words = [ESCAPES.get(word, word) for word in record["words"]]
        tags = [ESCAPES.get(tag, tag) for tag in record["tags"]]
        fixed = [[text] * n for text in (document, "0", "-", "-", "-", "-")]
        numbers = [str(i) for i in range(n)]
        head, part, *others = fixed
        parts.append(_rows([head, part, numbers, words, tags, bits, *others, names, others[0]]))
    return "".join(parts) + "#end document\n"


def ptb(records: list[Sentence]) -> str:
    """Trees over several lines, each in a bracket without a label."""
    return "".join(
        f"( {record['tree'].replace(' (', chr(10) + '    (')} )\n\n" for record in records
    )


def brackets(records: list[Sentence]) -> str:
    """One tree on each line."""
    return "".join(f"{record['tree']}\n" for record in records)


def bmes(records: list[Sentence]) -> str:
    """One character and its tag on each line."""
    parts = []
    for record in records:
        ends = [0]
        for word in record["words"]:
            ends.append(ends[-1] + len(word))
        spans = [(ends[start], ends[end], label) for start, end, label in record["ents"]]
        tags = spans_to_tags(spans, ends[-1], "bioes")
        tags = [f"M{tag[1:]}" if tag.startswith("I-") else tag for tag in tags]
        parts.append(_rows(["".join(record["words"]), tags]))
    return "".join(parts)


def sample(records: list[Sentence]) -> str:
    """JSON lines."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def glove(records: list[Sentence]) -> str:
    """A vector for each word, after the numbers of rows and columns."""
    words = dict.fromkeys(word.lower() for record in records for word in record["words"])
    lines = [
        " ".join([word, *(f"{(7 * i + 3 * j) % 11 / 10 - 0.5:.3f}" for j in range(DIM))])
        for i, word in enumerate(words)
    ]
    return "\n".join([f"{len(lines)} {DIM}", *lines, ""])


class Format(NamedTuple):
    """A format of `spacy-psa convert`.

    Files have a `name`, their text is written by `write`, and they may be packed in `packings`. The
    command has `options`, and those in `archived` if the file is in an archive.
    """

    write: Callable[[list[Sentence]], str]
    name: str = "corpus.txt"
    packings: tuple[str, ...] = ("gz",)
    options: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()


FORMATS = {
    "conll2003": Format(conll2003),
    "conll2000": Format(
        conll2000, "train.txt", ("gz", "zip", "tar.gz"), archived=("--member", "train.txt")
    ),
    "ontonotes": Format(ontonotes, "wsj_0203.v4_gold_conll", ("gz", "zip", "tar.xz")),
    "ptb": Format(ptb, "wsj_0203.mrg", ("gz", "zip", "tar.bz2")),
    "brackets": Format(brackets),
    "bmes": Format(bmes),
    "sample": Format(sample, "corpus.jsonl"),
    "glove": Format(glove, f"vectors.{DIM}d.txt", ("gz", "zip"), options=("--dim", str(DIM))),
}
OPENERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, "gz": lambda data: gzip.compress(data, mtime=0), "bz2": bz2.compress,
    "xz": lzma.compress,
}  # fmt: skip


def pack(members: list[tuple[str, bytes]], packing: str) -> bytes:
    """Put files, with their names and contents, in an archive.

    The packing is "zip", "tar" and its compression, or "" or "gz" for one file.
    """
    if packing == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members:
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return packed.getvalue()
    kind, _, compression = packing.partition(".")
    if kind != "tar":
        ((_, data),) = members
        return OPENERS[packing](data)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in members:
            header = tarfile.TarInfo(name)
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))
    return OPENERS[compression](packed.getvalue())
