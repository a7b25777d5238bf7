"""Errors that the user can correct, and the checks of settings that raise them."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from numbers import Integral, Real
from typing import Any, get_args


class InputError(ValueError):
    """An error in the user's input, with advice on how to correct it.

    The message names the wrong file, line, token or setting and what to do about it. The command
    line prints the message as one line and exits with code 2.

    Examples:
        >>> raise InputError("train.txt:3: 1 column instead of 2")
        Traceback (most recent call last):
            ...
        spacy_psa.errors.InputError: train.txt:3: 1 column instead of 2
    """


class SettingError(InputError):
    """An error in the value of one setting.

    Args:
        setting: name of the setting.
        value: the wrong value.
        advice: how to correct it. It ends the message.

    Examples:
        >>> print(SettingError("window", 0, "it must be 1 or more"))
        window is 0: it must be 1 or more
    """

    def __init__(self, setting: str, value: Any, advice: str):
        super().__init__(f"{setting} is {value!r}: {advice}")
        self.setting = setting
        self.value = value
        self.advice = advice

    def __reduce__(self) -> tuple[type["SettingError"], tuple[str, Any, str]]:
        return SettingError, (self.setting, self.value, self.advice)


def check_choice(setting: str, value: Any, choices: Any) -> None:
    """Raise SettingError unless a value is one of the choices of a `Literal` type."""
    if value not in get_args(choices):
        raise SettingError(setting, value, f"it must be one of {get_args(choices)}")


def check_sizes(*, least: int = 1, **sizes: int | None) -> None:
    """Raise SettingError unless each size is a whole number of at least `least`.

    None means that a size is not set, which is allowed.
    """
    for setting, size in sizes.items():
        if size is None:
            continue
        if isinstance(size, bool) or not isinstance(size, Integral):
            raise SettingError(setting, size, f"it must be a whole number, {least} or more")
        if size < least:
            raise SettingError(setting, size, f"it must be {least} or more")


def check_rates(*, below_one: bool = False, **rates: float) -> None:
    """Raise SettingError unless each rate, such as a dropout rate, is from 0 to 1.

    With `below_one`, a rate of 1 is an error as well, because the rest is divided by 1 - rate.
    """
    for setting, rate in rates.items():
        if not _is_number(rate) or not 0 <= rate <= 1 or (below_one and rate == 1):
            most = "less than 1" if below_one else "1"
            raise SettingError(setting, rate, f"it must be a number from 0 to {most}")


def check_amounts(advice: str = "it must be 0 or more", **amounts: float) -> None:
    """Raise SettingError unless each amount, such as a weight, is a finite number of at least 0."""
    for setting, amount in amounts.items():
        if not _is_number(amount) or not 0 <= amount < inf:
            raise SettingError(setting, amount, advice)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put a name, of an architecture or a component, before the SettingErrors raised inside."""
    try:
        yield
    except SettingError as error:
        raise InputError(f"{name}: {error}") from None
