"""Sets that hold the truth with a promised probability, and where a component keeps the promise.

`spacy-psa calibrate --coverage` finds the threshold by split conformal prediction;
`spacy_psa.analysis.conformal` has the mathematics.
"""

from typing import Any, NamedTuple

from spacy_psa.errors import InputError


class Coverage(NamedTuple):
    """What a component promises of its prediction sets.

    Examples:
        >>> Coverage(0.9, 0.02, 215).least
        0.02
    """

    level: float
    """The promised probability that the truth is in the set, from 0 to 1."""
    least: float
    """The least probability of what is in the set."""
    documents: int
    """The number of documents that the threshold was found with."""


class Covered:
    """Gives a component a coverage, which is saved with it.

    Examples:
        >>> import spacy
        >>> ner = spacy.blank("en").add_pipe("crf_ner")
        >>> ner.coverage is None
        True
        >>> ner.coverage = Coverage(level=0.9, least=0.02, documents=215)
        >>> ner.cfg["coverage"]
        [0.9, 0.02, 215]
    """

    name: str
    cfg: dict[str, Any]

    @property
    def coverage(self) -> Coverage | None:
        """What is promised of the sets of `prediction_sets`; None before `calibrate --coverage`.

        Raises:
            InputError: if it is set to something that is not a `Coverage`.
        """
        kept = self.cfg.get("coverage")
        return None if kept is None else Coverage(*kept)

    @coverage.setter
    def coverage(self, value: Coverage | None) -> None:
        self.cfg.pop("coverage", None)
        if value is not None:
            self.cfg["coverage"] = self._checked_coverage(value)

    def _checked_coverage(self, value: Any) -> list[float]:
        try:
            level, least, documents = value
            right = 0 < level < 1 and 0 <= least <= 1 and documents > 0
        except (TypeError, ValueError):
            right = False
        if not right:
            raise InputError(
                f"{self.name}: coverage is {value!r}: take a level between 0 and 1, a least "
                "probability from 0 to 1 and a number of documents"
            )
        return list(value)

    def _promised(self) -> Coverage:
        coverage = self.coverage
        if coverage is None:
            raise InputError(
                f"{self.name}: it has no coverage yet: run `spacy-psa calibrate MODEL DEV.spacy "
                "--coverage 0.9`"
            )
        return coverage
