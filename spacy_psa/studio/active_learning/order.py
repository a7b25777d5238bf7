"""The orders of texts to annotate."""

from enum import Enum


class Order(str, Enum):
    """What makes a text come first; `usefulness` defines entropy and errors."""

    entropy = "entropy"
    errors = "errors"
    random = "random"
