"""Calibrated settings of a component: its temperature, the promises of its sets, its counts.

`spacy-psa calibrate` finds them; `spacy_psa.analysis.temperature`, `.conformal` and `.counts` have
the mathematics.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy
from thinc.api import xp2torch
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.bridge.layers import join_rows
from spacy_psa.errors import InputError

COLDEST, HOTTEST = 0.01, 100.0
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


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "coverage": checked_coverage,
    "recall": checked_recall,
    "counts": checked_counts,
}


class Stored(Generic[Value]):
    """An attribute of `Calibrated`, kept among the saved settings of a component; None before."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    if TYPE_CHECKING:

        def __get__(self, calibrated: object, owner: type) -> Value | None: ...
    else:

        def __get__(self, calibrated: Any, owner: type) -> Any:
            if calibrated is None:
                return self
            kept = calibrated.pipe.cfg.get(self.name)
            return None if kept is None else CHECKS[self.name](calibrated.pipe.name, kept)

    def __set__(self, calibrated: "Calibrated", value: Value | None) -> None:
        pipe = calibrated.pipe
        if value is None:
            pipe.cfg.pop(self.name, None)
        else:
            pipe.cfg[self.name] = _plain(CHECKS[self.name](pipe.name, value))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value


class Calibrated:
    """The results of `spacy-psa calibrate` for a component, which are saved with it.

    Args:
        pipe: a component with a `temperature`.
    """

    coverage = Stored[Coverage]()
    """The promise of `prediction_sets`; None before `spacy-psa calibrate --coverage`."""
    recall = Stored[dict[str, Promise]]()
    """The promises of recall by label; None before `spacy-psa calibrate --recall`."""
    counts = Stored[dict[str, CountCorrection]]()
    """The corrections of counts by label; None before `spacy-psa calibrate --counts`."""

    def __init__(self, pipe: Any):
        self.pipe = pipe

    @property
    def least(self) -> float:
        """The least probability of an item of a prediction set.

        Raises:
            InputError: if the component has no coverage.
        """
        coverage = self.coverage
        if coverage is None:
            raise InputError(
                f"{self.pipe.name}: it has no coverage yet: run `spacy-psa calibrate MODEL "
                "DEV.spacy --coverage 0.9`"
            )
        return coverage.least

    @property
    def names(self) -> list[str]:
        """The names of what was calibrated, apart from the temperature."""
        return [name for name in CHECKS if name in self.pipe.cfg]

    def forget(self) -> None:
        """Remove all of it, because the probabilities change."""
        for name in self.names:
            del self.pipe.cfg[name]


class Temperature:
    """The number that log potentials are divided by before inference (Guo et al. 2017).

    It is a number from 0.01 to 100; another value raises an InputError. A value above 1 makes the
    model less sure, a value below 1 makes it surer, and 1 leaves it as it was trained. The best
    analysis stays the same. Training does not use the temperature. Another temperature removes what
    was calibrated for other probabilities.
    """

    if TYPE_CHECKING:

        def __get__(self, pipe: object, owner: type) -> float: ...
    else:

        def __get__(self, pipe: Any, owner: type) -> Any:
            return self if pipe is None else float(pipe.cfg.get("temperature", 1.0))

    def __set__(self, pipe: Any, value: float) -> None:
        checked = checked_temperature(pipe.name, value)
        if checked != pipe.temperature:
            pipe.calibrated.forget()
        pipe.cfg["temperature"] = checked


def tempered(pipe: Any, scores: Sequence[Floats2d]) -> Tensor:
    """Join the scores of sentences, divided by the temperature of the component."""
    flat = xp2torch(join_rows(pipe.model.ops.xp, list(scores)))
    return flat if pipe.temperature == 1.0 else flat / pipe.temperature


def check_saved(name: str, cfg: Mapping[str, Any]) -> None:
    """Check what was calibrated among the saved settings of a component.

    Raises:
        InputError: if it is not possible; the error begins with the `name` of the component.
    """
    checked_temperature(name, cfg.get("temperature", 1.0))
    for setting, check in CHECKS.items():
        if setting in cfg:
            check(name, cfg[setting])
