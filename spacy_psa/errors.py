"""Errors that the user can correct, and the checks of settings that raise them."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from numbers import Integral, Real
from typing import Any, get_args


class InputError(ValueError):
    """An error in the user's input, with advice on how to correct it.

    The message names the file, line, token or setting that is wrong, and says what to do. The
    command line prints the message as one line and exits with code 2.

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
        value: the value that was given.
        advice: what to give instead. It ends the message.

    Examples:
        >>> print(SettingError("window", 0, "take 1 or more"))
        window is 0: take 1 or more
    """

    def __init__(self, setting: str, value: Any, advice: str):
        super().__init__(f"{setting} is {value!r}: {advice}")
        self.setting = setting
        self.value = value
        self.advice = advice

    def __reduce__(self) -> tuple[type["SettingError"], tuple[str, Any, str]]:
        return SettingError, (self.setting, self.value, self.advice)


def check_choice(setting: str, value: Any, choices: Any) -> None:
    """Check that a value is one of the choices of a `Literal`.

    Args:
        setting: name of the setting, for the error.
        value: the value to check.
        choices: the `Literal` type.

    Raises:
        SettingError: if the value is not one of the choices.

    Examples:
        >>> from typing import Literal
        >>> check_choice("pool", "max", Literal["final", "max"])
        >>> check_choice("pool", "mean", Literal["final", "max"])
        Traceback (most recent call last):
            ...
        spacy_psa.errors.SettingError: pool is 'mean': take one of ('final', 'max')
    """
    if value not in get_args(choices):
        raise SettingError(setting, value, f"take one of {get_args(choices)}")


def check_sizes(*, least: int = 1, **sizes: int | None) -> None:
    """Check that each size is a whole number of at least 1, or of another number.

    Args:
        least: the smallest size.
        sizes: the sizes by name. None stands for a size that is not set, and passes.

    Raises:
        SettingError: for the first size below `least` or that is no whole number.

    Examples:
        >>> check_sizes(hidden=100, project=None)
        >>> check_sizes(hidden=0)
        Traceback (most recent call last):
            ...
        spacy_psa.errors.SettingError: hidden is 0: take 1 or more
    """
    for setting, size in sizes.items():
        if size is None:
            continue
        if isinstance(size, bool) or not isinstance(size, Integral):
            raise SettingError(setting, size, f"take a whole number, {least} or more")
        if size < least:
            raise SettingError(setting, size, f"take {least} or more")


def check_rates(*, below_one: bool = False, **rates: float) -> None:
    """Check that each rate, such as a dropout rate, is from 0 to 1.

    Args:
        below_one: whether 1 is not possible either, because the rest is divided by 1 - rate.
        rates: the rates by name.

    Raises:
        SettingError: for the first rate out of the range.

    Examples:
        >>> check_rates(input_dropout=0.5, output_dropout=1.0)
        >>> check_rates(dropout=1.5)
        Traceback (most recent call last):
            ...
        spacy_psa.errors.SettingError: dropout is 1.5: take a number from 0 to 1
        >>> check_rates(below_one=True, rate=1.0)
        Traceback (most recent call last):
            ...
        spacy_psa.errors.SettingError: rate is 1.0: take a number from 0 to less than 1
    """
    for setting, rate in rates.items():
        if not _is_number(rate) or not 0 <= rate <= 1 or (below_one and rate == 1):
            most = "less than 1" if below_one else "1"
            raise SettingError(setting, rate, f"take a number from 0 to {most}")


def check_amounts(advice: str = "take 0 or more", **amounts: float) -> None:
    """Check that each amount, such as a weight or a limit, is a finite number of at least 0.

    Args:
        advice: what to give instead, for the error.
        amounts: the amounts by name.

    Raises:
        SettingError: for the first amount that is not.

    Examples:
        >>> check_amounts(weight_decay=0.01)
        >>> check_amounts("take 0 for no limit, or more", max_grad_norm=-1.0)
        Traceback (most recent call last):
            ...
        spacy_psa.errors.SettingError: max_grad_norm is -1.0: take 0 for no limit, or more
    """
    for setting, amount in amounts.items():
        if not _is_number(amount) or not 0 <= amount < inf:
            raise SettingError(setting, amount, advice)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put a name, of an architecture or a component, before the SettingErrors raised inside.

    Examples:
        >>> with naming("BiLSTM.v1"):
        ...     check_sizes(hidden=0)
        Traceback (most recent call last):
        spacy_psa.errors.InputError: BiLSTM.v1: hidden is 0: take 1 or more
    """
    try:
        yield
    except SettingError as error:
        raise InputError(f"{name}: {error}") from None
