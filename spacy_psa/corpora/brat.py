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
OTHERS = "line(s) that mark no text, such as a relation or a note, left out"


def annotation_of(path: Path) -> Path:
    """Return the `.ann` file that belongs to a text."""
    return path.with_suffix(".ann")


def read_texts(path: Path, repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of a `.txt` file with the entities of its `.ann` file.

    The pieces of a mark are one if only blanks are between them, as brat writes marks over line
    ends. Lines that mark no text are counted in `repairs`.
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
        gaps = [text[end:start] for end, start in zip(edges[1::2], edges[2::2])]
        quote = None if gaps else match["quote"]
        broken = any(map(str.strip, gaps))
        place = f"{notes}:{number}"
        marks.append(Mark(edges[0], edges[-1], match["label"], quote, place, broken))
    yield MarkedText(str(path), text, marks)
