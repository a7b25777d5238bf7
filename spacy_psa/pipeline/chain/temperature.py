"""The temperature of a component's probabilities (Guo et al. 2017)."""

import math
from typing import Any

import numpy

from spacy_psa.errors import InputError


class Tempered:
    """A component with a temperature, which is saved with it."""

    name: str
    cfg: dict[str, Any]

    @property
    def temperature(self) -> float:
        """What the log potentials are divided by before inference.

        More than 1 makes the model less sure, less than 1 surer, 1 leaves it as trained.
        The best analysis stays the same; training does not use it.

        Raises InputError, when it is set, for what is not a finite number above 0.
        """
        return float(self.cfg.get("temperature", 1.0))

    @temperature.setter
    def temperature(self, value: float) -> None:
        self.cfg["temperature"] = self._checked_temperature(value)

    def _checked_temperature(self, value: Any) -> float:
        number = isinstance(value, (int, float, numpy.floating)) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise InputError(
                f"{self.name}: temperature is {value!r}: take a finite number greater than 0"
            )
        return float(value)
