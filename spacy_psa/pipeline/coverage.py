"""Calibrated settings of a chain component: its temperature, and the coverage of its sets.

`spacy-psa calibrate` finds both; `spacy_psa.analysis.temperature` and `.conformal` have the
mathematics.
"""

from typing import Any, NamedTuple

import numpy

from spacy_psa.errors import InputError

COLDEST, HOTTEST = 0.01, 100.0


class Coverage(NamedTuple):
    """The promise of the prediction sets of a component."""

    level: float
    """The promised probability that the truth is in the set, from 0 to 1."""
    least: float
    """The least probability of an item of the set."""
    documents: int
    """The number of documents that the threshold was found with."""


def checked_temperature(name: str, value: Any) -> float:
    """Check that a temperature is a number from 0.01 to 100.

    Raises:
        InputError: if it is not; the error begins with the `name` of the component.
    """
    number = isinstance(value, (int, float, numpy.floating)) and not isinstance(value, bool)
    if not number or not COLDEST <= value <= HOTTEST:
        raise InputError(
            f"{name}: temperature is {value!r}: it must be a number from {COLDEST:g} to {HOTTEST:g}"
        )
    return float(value)


def checked_coverage(name: str, value: Any) -> Coverage:
    """Check that a coverage has a level, a least probability and a number of documents.

    Raises:
        InputError: if it does not; the error begins with the `name` of the component.
    """
    try:
        level, least, documents = value
        right = 0 < level < 1 and 0 <= least <= 1 and documents > 0
    except (TypeError, ValueError):
        right = False
    if not right:
        raise InputError(
            f"{name}: coverage is {value!r}: it must be a level between 0 and 1, a least "
            "probability from 0 to 1 and a number of documents"
        )
    return Coverage(*value)
