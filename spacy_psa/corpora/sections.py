"""Sections of the Wall Street Journal corpus: wsj_0203 is the third document of section 2."""

import re

from spacy_psa.errors import InputError

LAST = 24
_WSJ = re.compile(r"wsj_(\d\d)\d\d(?!\d)")


def parse_sections(text: str) -> frozenset[int]:
    """Read the numbers of sections from text: "02-21", "22" or "0-18,24".

    Raises:
        InputError: if the text has another form, or a section is not one of 0 to 24.

    Examples:
        >>> sorted(parse_sections("00-02,24"))
        [0, 1, 2, 24]
    """
    sections: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,2})\s*(?:-\s*(\d{1,2})\s*)?", part, re.ASCII)
        if not found:
            raise InputError(f"--sections {text}: {part!r} is not a section; give 22 or 02-21")
        first = int(found[1])
        last = int(found[2] or first)
        if not first <= last <= LAST:
            raise InputError(
                f"--sections {text}: {part!r} is not a range; "
                f"give sections of 0 to {LAST}, the lower first"
            )
        sections.update(range(first, last + 1))
    return frozenset(sections)


def section_of(document: str) -> int | None:
    """Give the section in the name of a document; None if it is not a Wall Street Journal document.

    Examples:
        >>> section_of("nw/wsj/02/wsj_0203"), section_of("bn/cnn/00/cnn_0001")
        (2, None)
    """
    found = _WSJ.search(document)
    return int(found[1]) if found else None
