"""brat's standoff format: a `.txt` file with the text and an `.ann` file with its marks.

    T1	PER 0 3	Ada

Of the `.ann` file, the lines with text-bound annotations (T) are read; the others are counted.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from spacy_psa.corpora.lines import read_lines
from spacy_psa.corpora.marked_text import Mark, MarkedText
from spacy_psa.errors import InputError

FORM = re.compile(r"T\S*\t(?P<label>\S+) (?P<offsets>\d+ \d+(?:;\d+ \d+)*)(?:\t(?P<quote>.*))?")
GAPS = "entity(ies) in several pieces, read from the first to the last"
OTHERS = "line(s) that mark no text, such as a relation or a note, left out"


def annotation_of(path: Path) -> Path:
    """Return the `.ann` file that belongs to a text."""
    return path.with_suffix(".ann")


def read_texts(path: Path, repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of a `.txt` file with the entities of its `.ann` file.

    Entities in several pieces are read from their first to their last character. They are counted
    in `repairs`, as are lines that mark no text.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")  # brat counts both characters of CRLF
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text ({error}); convert it to UTF-8") from error
    marks = []
    notes = annotation_of(path)
    for number, line in read_lines(notes, Counter()):
        if not line.startswith("T"):
            repairs.update([OTHERS] if line else [])
            continue
        match = FORM.fullmatch(line)
        if not match:
            raise InputError(
                f"{notes}:{number}: is not T1, tab, label and offsets, tab, text; correct the line"
            )
        edges = [int(edge) for edge in re.findall(r"\d+", match["offsets"])]
        whole = len(edges) == 2
        if not whole:
            repairs[GAPS] += 1
        quote = match["quote"] if whole else None
        marks.append(Mark(edges[0], edges[-1], match["label"], quote, f"{notes}:{number}"))
    yield MarkedText(str(path), text, marks)
