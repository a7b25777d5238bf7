"""The temperature of a component's probabilities (Guo et al. 2017)."""

from typing import Any

import numpy

from spacy_psa.errors import InputError

COLDEST, HOTTEST = 0.01, 100.0


class Tempered:
    """Gives a component a temperature, which is saved with it.

    Examples:
        >>> import spacy
        >>> ner = spacy.blank("en").add_pipe("crf_ner")
        >>> ner.temperature
        1.0
        >>> ner.temperature = 1.3
        >>> ner.cfg["temperature"]
        1.3
    """

    name: str
    cfg: dict[str, Any]

    @property
    def temperature(self) -> float:
        """The number that the log potentials are divided by before inference.

        A value above 1 makes the model less sure, a value below 1 makes it surer, and 1 leaves it
        as it was trained. The best analysis stays the same. Training does not use the temperature.
        Another temperature removes the coverage, which belongs to other probabilities.

        Raises:
            InputError: if it is set to something that is not a number from 0.01 to 100.
        """
        return float(self.cfg.get("temperature", 1.0))

    @temperature.setter
    def temperature(self, value: float) -> None:
        checked = self._checked_temperature(value)
        if checked != self.temperature:
            self.cfg.pop("coverage", None)
        self.cfg["temperature"] = checked

    def _checked_temperature(self, value: Any) -> float:
        number = isinstance(value, (int, float, numpy.floating)) and not isinstance(value, bool)
        if not number or not COLDEST <= value <= HOTTEST:
            raise InputError(
                f"{self.name}: temperature is {value!r}: "
                f"take a number from {COLDEST:g} to {HOTTEST:g}"
            )
        return float(value)
