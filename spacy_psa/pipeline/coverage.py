"""Calibrated settings of a chain component: its temperature, the promises of its sets, its counts.

`spacy-psa calibrate` finds them; `spacy_psa.analysis.temperature`, `.conformal` and `.counts` have
the mathematics.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy

from spacy_psa.errors import InputError

COLDEST, HOTTEST = 0.01, 100.0
CALIBRATED = ("coverage", "recall", "counts")
"""The settings that belong to the probabilities of one temperature."""
NORMAL = 1.959964
"""Half the width of a 95% interval of a normal distribution, in standard deviations."""


class Coverage(NamedTuple):
    """The promise of the prediction sets of a component."""

    level: float
    """The promised probability that the truth is in the set, from 0 to 1."""
    least: float
    """The least probability of an item of the set."""
    documents: int
    """The number of documents that the threshold was found with."""


class Promise(NamedTuple):
    """The promise of the recall of a label, or of all."""

    recall: float
    """The promised share of the entities of a document that are found, in the mean."""
    confidence: float
    """The probability of documents for the calibration with which the promise is kept."""
    least: float
    """The least probability of a span that is shown."""
    documents: int
    """The number of documents that the threshold was found with."""


class Correction(NamedTuple):
    """How counts differ from the expected ones, in the documents of the calibration."""

    ratio: float = 1.0
    """The true number over the expected one."""
    dispersion: float = 1.0
    """The variance of the true numbers of documents over the expected variance."""
    uncertainty: float = 0.0
    """The variance of the ratio."""

    def interval(self, mean: float, variance: float) -> tuple[float, float]:
        """Correct a number by its moments; return it with half the width of its 95% interval."""
        spread = self.dispersion * variance + self.uncertainty * mean**2
        return self.ratio * mean, NORMAL * math.sqrt(spread)


class CountCorrection(NamedTuple):
    """The corrections of the numbers of mentions and of distinct entities of a label."""

    mentions: Correction = Correction()
    distinct: Correction = Correction()


Value = TypeVar("Value")


class Calibrated(Generic[Value]):
    """An attribute of a component that `spacy-psa calibrate` sets; None before.

    It is saved with the component, and belongs to the probabilities that the component had.

    Args:
        check: called with the name of the component and a value, also one that was read from a
            file; returns the value in its type, or raises an InputError.
    """

    def __init__(self, check: Callable[[str, Any], Value]):
        self.check = check

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, pipe: None, owner: type) -> "Calibrated[Value]": ...
    @overload
    def __get__(self, pipe: object, owner: type) -> Value | None: ...
    def __get__(self, pipe: Any, owner: type) -> Any:
        if pipe is None:
            return self
        kept = pipe.cfg.get(self.name)
        return None if kept is None else self.check(pipe.name, kept)

    def __set__(self, pipe: Any, value: Value | None) -> None:
        pipe.cfg.pop(self.name, None)
        if value is not None:
            pipe.cfg[self.name] = _plain(self.check(pipe.name, value))


def forget_calibration(pipe: Any) -> None:
    """Remove the temperature of a component, and all that was calibrated for its probabilities."""
    pipe.temperature = 1.0
    for name in CALIBRATED:
        pipe.cfg.pop(name, None)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value


def checked_recall(name: str, value: Any) -> dict[str, Promise]:
    """Check that there is a `Promise` for some labels; the empty label stands for all.

    Raises:
        InputError: if there is not; the error begins with the `name` of the component.
    """
    try:
        read = {label: Promise(*promise) for label, promise in value.items()}
        right = all(
            0 < each.recall < 1 and 0 < each.confidence < 1 and 0 <= each.least <= 1
            for each in read.values()
        )
    except (TypeError, ValueError, AttributeError):
        right = False
    if not right:
        raise InputError(
            f"{name}: recall is {value!r}: it must have a recall, a confidence, a least "
            "probability and a number of documents for each label"
        )
    return read


def checked_counts(name: str, value: Any) -> dict[str, CountCorrection]:
    """Check that there is a `CountCorrection` for each label.

    Raises:
        InputError: if there is not; the error begins with the `name` of the component.
    """
    try:
        read = {
            label: CountCorrection(*(Correction(*map(float, each)) for each in pair))
            for label, pair in value.items()
        }
        right = all(number >= 0 for pair in read.values() for each in pair for number in each)
    except (TypeError, ValueError, AttributeError):
        right = False
    if not right:
        raise InputError(
            f"{name}: counts is {value!r}: it must have a ratio, a dispersion and an uncertainty "
            "of mentions and of distinct entities for each label"
        )
    return read


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
