"""Sections of the Wall Street Journal corpus: wsj_0203 is the third document of section 2."""

import re

from spacy_psa.errors import InputError

LAST = 24
_WSJ = re.compile(r"wsj_(\d\d)\d\d(?!\d)", re.IGNORECASE)


def parse_sections(text: str) -> frozenset[int]:
    """Read the numbers of sections from text: "02-21", "22" or "0-18,24".

    Raises:
        InputError: if the text has another form, or a section is not one of 0 to 24.

    Examples:
        >>> sorted(parse_sections("00-02,24"))
        [0, 1, 2, 24]
    """
    return parse_numbers(text, "--sections", LAST)


def parse_numbers(text: str, option: str, last: int) -> frozenset[int]:
    """Read numbers and ranges of numbers from text: "1-270,400-1151".

    Args:
        text: the text.
        option: the option that has the text, for the error message.
        last: the greatest number.

    Raises:
        InputError: if the text has another form, or a number is greater than `last`.

    Examples:
        >>> sorted(parse_numbers("1-3,300", "--files", 1151))
        [1, 2, 3, 300]
    """
    numbers: set[int] = set()
    number = rf"(\d{{1,{len(str(last))}}})"
    for part in text.split(","):
        found = re.fullmatch(rf"\s*{number}\s*(?:-\s*{number}\s*)?", part, re.ASCII)
        if not found:
            raise InputError(f"{option} {text}: {part!r} is no number; give 22 or 02-21")
        first = int(found[1])
        final = int(found[2] or first)
        if not first <= final <= last:
            raise InputError(
                f"{option} {text}: {part!r} is not a range; "
                f"give numbers of 0 to {last}, the lower first"
            )
        numbers.update(range(first, final + 1))
    return frozenset(numbers)


def section_of(document: str) -> int | None:
    """Give the section in the name of a document; None if it is not a Wall Street Journal document.

    Examples:
        >>> section_of("nw/wsj/02/wsj_0203"), section_of("bn/cnn/00/cnn_0001")
        (2, None)
    """
    found = _WSJ.search(document)
    return int(found[1]) if found else None
