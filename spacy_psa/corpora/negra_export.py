"""NEGRA's export format (Brants, 1997) and TIGER XML (Mengel and Lezius, 2000).

A sentence is between `#BOS` and `#EOS`. It has a line for each word, and then for each
constituent (#500, #501, ...), with its function and the number of the constituent above; 0 is the
root. TIGER XML has the same in elements <t> and <nt>. Trees may be discontinuous, which
constituents with a start and an end cannot be. A word without letters and digits that hangs at the
root, as punctuation does, is put into the lowest constituent around it. A tree that is still
discontinuous is left out or raised.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.bracketing import Labels
from spacy_psa.corpora.lines import BLANKS
from spacy_psa.corpora.projective import (
    is_discontinuous,
    lower_punctuation,
    path_up,
    raise_blocks,
    yields,
)
from spacy_psa.corpora.treebanks import open_documents, tree_docs
from spacy_psa.corpora.trees import ROOTS, Parsed
from spacy_psa.errors import InputError

Discontinuous = Literal["skip", "raise"]

ENDINGS = (".export", ".negra", ".xml", ".export.gz", ".negra.gz", ".xml.gz")
LAST = 999_999
"""The greatest number of a sentence."""
HEAD = "HD"
ROOT_LABEL = "VROOT"
NO_FUNCTION = "--"
LEFT_OUT = "discontinuous tree(s) left out (--discontinuous raise keeps them)"
RAISED = "discontinuous tree(s) made continuous by raising"
SECONDARY = "secondary edge(s) left out"
_NODE = re.compile(r"#\d{3,}")
_FORMAT = re.compile(r"#FORMAT\s+([34])\b")
_HEADER = re.compile(r"%%\s*word\s+(lemma)?")
_BEGIN = re.compile(r"#BOS\s+(\S+)")


class Row(NamedTuple):
    """A word or a constituent; its form is the word, or a number such as #500."""

    form: str
    tag: str
    function: str
    parent: str
    secondary: int = 0
    """The number of further edges from it, which a tree does not have."""


def read_docs(
    source: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    sentences: Collection[int] | None = None,
    labels: Labels = "bare",
    discontinuous: Discontinuous = "skip",
) -> Iterator[Doc]:
    """Yield one `Doc` for each tree of the .export or .negra files in a folder or archive.

    The layers of a `Doc` are those of `tree_docs`.

    Args:
        repairs: counts the trees that are left out or raised, secondary edges and repaired lines.
        sentences: reads only sentences with these numbers, of ids such as 12 or s12; None
            reads all.
        labels: "bare" for categories (NP); "functions" or "whole" for categories and functions
            (NP-SB).
        discontinuous: whether discontinuous trees are left out ("skip") or made continuous
            ("raise"), see `raise_blocks`.
    """
    counts: Counter[str] = Counter() if repairs is None else repairs

    def trees() -> Iterator[tuple[str, Parsed]]:
        empty, kept = True, False
        what = ".export, .negra or .xml files"
        for name, document, lines in open_documents(
            source, lambda path: path.endswith(ENDINGS), what, counts
        ):
            read = read_xml if name.removesuffix(".gz").endswith(".xml") else read_rows
            for line, id_, rows in read(name, lines):
                empty = False
                if sentences is not None and _number(f"{name}:{line}", id_) not in sentences:
                    continue
                kept = True
                parsed = _parsed(f"{name}:{line}", rows, labels, discontinuous, counts)
                if parsed is not None:
                    yield document, parsed
        if empty:
            raise InputError(
                f"{source}: no sentences, which begin with #BOS or <s; check the format"
            )
        if not kept:
            raise InputError(f"{source}: no sentence has one of the numbers that are kept")

    return tree_docs(vocab, trees())


def _number(place: str, id_: str) -> int:
    match = re.fullmatch(r"s?(\d+)", id_)
    if not match:
        raise InputError(
            f"{place}: the id {id_} of the sentence is not a number; leave out --sentences"
        )
    return int(match[1])


def read_xml(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, list[Row]]]:
    """Yield the line, the id and the rows of each sentence of TIGER XML."""
    parser: Any = XMLPullParser(["start", "end"])
    line = begin = 1
    try:
        for line, text in lines:
            parser.feed(text + "\n")
            for event, element in parser.read_events():
                if element.tag == "s" and event == "start":
                    begin = line
                elif element.tag == "s":
                    yield begin, element.get("id", ""), _rows_of(f"{name}:{begin}", element)
                    element.clear()
        parser.close()
    except ParseError as error:
        raise InputError(f"{name}:{line}: not TIGER XML ({error}); correct the file") from error


def _rows_of(place: str, sentence: Element) -> list[Row]:
    terminals, nodes = list(sentence.iter("t")), list(sentence.iter("nt"))
    above = {
        edge.get("idref", ""): (edge.get("label", NO_FUNCTION), f"{i}")
        for i, node in enumerate(nodes, 500)
        for edge in node.findall("edge")
    }
    ids = {node.get("id", "") for node in (*terminals, *nodes)}
    if lost := sorted(above.keys() - ids):
        raise InputError(f"{place}: an edge leads to {lost[0]}, which is not in the sentence")
    forms = [node.get("word", "") for node in terminals]
    if not all(forms):
        raise InputError(f"{place}: the terminal {forms.index('') + 1} has no word")
    forms += [f"#{i}" for i in range(500, 500 + len(nodes))]
    rows = []
    for form, node in zip(forms, [*terminals, *nodes], strict=True):
        function, parent = above.get(node.get("id", ""), (NO_FUNCTION, "0"))
        tag = node.get("pos") or node.get("cat") or "--"
        rows.append(Row(form, tag, function, parent, len(node.findall("secedge"))))
    return rows


def read_rows(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, list[Row]]]:
    """Yield the line, the id and the rows of each sentence.

    Format 3 has the columns form, tag, morphology, function and parent; format 4 has a lemma after
    the form, and a line "#FORMAT 4" or "%% word lemma" above. The function and the parent of each
    secondary edge may follow. Other comments (%%) are left out.
    """
    lemma, begin, id_, inside = 0, 1, "", False
    rows: list[Row] = []
    for line, text in lines:
        if not inside:
            if match := _FORMAT.match(text):
                lemma = int(match[1]) - 3
            elif match := _HEADER.match(text):
                lemma = int(bool(match[1]))
            elif match := _BEGIN.match(text):
                begin, id_, inside, rows = line, match[1], True, []
            continue  # the tables of origins, tags and functions are between sentences
        if _BEGIN.match(text):
            raise InputError(f"{name}:{line}: no #EOS before this #BOS; correct the file")
        if text.startswith("#EOS"):
            if text.split()[1:2] not in ([], [id_]):
                raise InputError(
                    f"{name}:{line}: this #EOS is not of the sentence {id_} of line {begin}; "
                    "correct the file"
                )
            yield begin, id_, rows
            inside = False
        elif text and not text.startswith("%%"):
            columns = BLANKS.split(text.strip(" \t"))
            if len(columns) < 5 + lemma or not columns[4 + lemma].isdecimal():
                raise InputError(
                    f"{name}:{line}: not {5 + lemma} columns of which the last is a number, as "
                    f"format {3 + lemma} has them; correct the line or the line #FORMAT"
                )
            function, parent, *others = columns[3 + lemma :]
            before_comment = takewhile(lambda column: not column.startswith("%%"), others)
            secondary = len(list(before_comment)) // 2
            rows.append(Row(columns[0], columns[1 + lemma], function, parent, secondary))
    if inside:
        raise InputError(f"{name}:{begin}: no #EOS ends this sentence; the file is cut off")


def _parsed(
    place: str, rows: list[Row], labels: Labels, discontinuous: Discontinuous, counts: Counter[str]
) -> Parsed | None:
    """Return the tree of a sentence; None if it has no words or is discontinuous and left out."""
    # The constituents come last, so that #2008 before a word is a word.
    last = next((i for i in range(len(rows), 0, -1) if not _NODE.fullmatch(rows[i - 1].form)), 0)
    tokens, nodes = rows[:last], rows[last:]
    if not tokens:
        counts["tree(s) without words left out"] += 1
        return None
    words = [row.form for row in tokens]
    above = _above(place, tokens, nodes)
    above = lower_punctuation(above, words)
    if is_discontinuous(above, len(words)):
        if discontinuous == "skip":
            counts[LEFT_OUT] += 1
            return None
        counts[RAISED] += 1
        heads = {i for i, row in enumerate([*tokens, *nodes]) if row.function == HEAD}
        above = raise_blocks(above, len(words), heads)
    if secondary := sum(row.secondary for row in rows):
        counts[SECONDARY] += secondary
    nested = []
    below = yields(above, len(words))
    for i, row in enumerate(nodes, len(words)):
        if below[i] and not (above[i] == len(above) and row.tag in (*ROOTS, ROOT_LABEL)):
            plain = labels == "bare" or row.function == NO_FUNCTION
            label = row.tag if plain else f"{row.tag}-{row.function}"
            nested.append((min(below[i]), max(below[i]) + 1, len(path_up(above, i)), label))
    # In preorder: the higher of two constituents with the same words comes first.
    nested.sort(key=lambda span: (span[0], -span[1], span[2]))
    spans = [(start, end, label) for start, end, _, label in nested]
    return Parsed(words, [row.tag for row in tokens], spans)


def _above(place: str, tokens: list[Row], nodes: list[Row]) -> list[int]:
    """Return the place of the node above each word and constituent, see `projective`."""
    root = len(tokens) + len(nodes)
    places = {row.form[1:]: i for i, row in enumerate(nodes, len(tokens))} | {"0": root}
    if len(places) <= len(nodes):
        raise InputError(f"{place}: two constituents have the same number; correct the sentence")
    for row in (*tokens, *nodes):
        if row.parent not in places:
            raise InputError(
                f"{place}: {row.form!r} hangs at #{row.parent}, which is not in the sentence; "
                "correct the sentence"
            )
    above = [places[row.parent] for row in (*tokens, *nodes)]
    for i, row in enumerate(nodes, len(tokens)):
        node, steps = i, 0
        while node < root and steps <= root:
            node, steps = above[node], steps + 1
        if node < root:
            raise InputError(f"{place}: {row.form} is above itself; correct the sentence")
    return above
