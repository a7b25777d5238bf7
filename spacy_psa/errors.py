"""The errors that a user can mend, and the checks of settings that raise them."""

from typing import Any, get_args


class InputError(ValueError):
    """Bad input: the message names the file, line or token, and what to do.

    The command line prints it as one line and exits with code 2.
    """


class SettingError(InputError):
    """A setting that cannot be taken.

    setting: its name. value: what was given. advice: what to give instead.
    """

    def __init__(self, setting: str, value: Any, advice: str):
        super().__init__(f"{setting} is {value!r}: {advice}")
        self.setting = setting
        self.value = value
        self.advice = advice

    def __reduce__(self) -> tuple[type["SettingError"], tuple[str, Any, str]]:
        return SettingError, (self.setting, self.value, self.advice)


def check_choice(setting: str, value: Any, choices: Any) -> None:
    """Raises SettingError where `value` is none of the choices of a `Literal`."""
    if value not in get_args(choices):
        raise SettingError(setting, value, f"take one of {get_args(choices)}")


def check_sizes(**sizes: int | None) -> None:
    """Raises SettingError for the first size below 1; None stands for a size that is not set."""
    for setting, size in sizes.items():
        if size is not None and size < 1:
            raise SettingError(setting, size, "take 1 or more")
