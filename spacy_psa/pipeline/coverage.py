"""Calibrated settings of a component: the promises of its sets, its counts.

`spacy-psa calibrate` finds them, and the `Temperature` of a component; the mathematics is in
`spacy_psa.analysis.temperature`, `.conformal` and `.counts`.
"""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from spacy_psa.errors import InputError
from spacy_psa.pipeline.inference import checked_temperature

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


def _coverage(value: Any) -> Coverage:
    coverage = Coverage(*value)
    if not (0 < coverage.level < 1 and 0 <= coverage.least <= 1 and coverage.documents > 0):
        raise ValueError
    return coverage


def _recall(value: Any) -> dict[str, Promise]:
    promises = {label: Promise(*promise) for label, promise in value.items()}
    for each in promises.values():
        if not (0 < each.recall < 1 and 0 < each.confidence < 1 and 0 <= each.least <= 1):
            raise ValueError
    return promises


def _counts(value: Any) -> dict[str, CountCorrection]:
    counts = {
        label: CountCorrection(*(Correction(*map(float, each)) for each in pair))
        for label, pair in value.items()
    }
    if not all(number >= 0 for pair in counts.values() for each in pair for number in each):
        raise ValueError
    return counts


READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "coverage": (
        _coverage,
        "be a level between 0 and 1, a least probability from 0 to 1 and a number of documents",
    ),
    "recall": (
        _recall,
        "have a recall, a confidence, a least probability and a number of documents for each label",
    ),
    "counts": (
        _counts,
        "have a ratio, a dispersion and an uncertainty of mentions and of distinct entities for "
        "each label",
    ),
}
"""For each setting the function that reads it, and what it must be or have, for errors.

The empty label of `recall` stands for all labels.
"""


def checked(name: str, setting: str, value: Any) -> Any:
    """Read a calibrated setting; InputError, which begins with `name`, if it is not possible."""
    read, must = READERS[setting]
    try:
        return read(value)
    except (TypeError, ValueError, AttributeError):
        raise InputError(f"{name}: {setting} is {value!r}: it must {must}") from None


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
            return None if kept is None else checked(calibrated.pipe.name, self.name, kept)

    def __set__(self, calibrated: "Calibrated", value: Value | None) -> None:
        pipe = calibrated.pipe
        if value is None:
            pipe.cfg.pop(self.name, None)
        else:
            pipe.cfg[self.name] = _plain(checked(pipe.name, self.name, value))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value


class Calibrated:
    """The results of `spacy-psa calibrate` for a component, which are saved with it."""

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
        return [name for name in READERS if name in self.pipe.cfg]

    def forget(self) -> None:
        """Remove all of it, because the probabilities change."""
        for name in self.names:
            del self.pipe.cfg[name]


def check_saved(name: str, cfg: Mapping[str, Any]) -> None:
    """Raise InputError, which begins with `name`, if a saved setting cannot be a calibrated one."""
    checked_temperature(name, cfg.get("temperature", 1.0))
    for setting in READERS:
        if setting in cfg:
            checked(name, setting, cfg[setting])
