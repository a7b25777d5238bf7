"""The registered names of the installed package, by the groups of its entry points."""

from collections.abc import Callable
from functools import cache
from importlib.metadata import distribution
from typing import Any

PACKAGE = "spacy-psa"


@cache
def names(group: str) -> dict[str, Callable[..., Any]]:
    """The functions of an entry point group by registered name, in the package's order."""
    return {
        point.name: point.load()
        for point in distribution(PACKAGE).entry_points
        if point.group == group
    }


@cache
def groups() -> set[str]:
    """The entry point groups of the package."""
    return {point.group for point in distribution(PACKAGE).entry_points}


def anchor(name: str) -> str:
    """The anchor of a registered name on its page: lower case, without the package."""
    return name.removeprefix(f"{PACKAGE}.").removesuffix(".v1").replace("_", "-").lower()


def short(name: str) -> str:
    """A registered name without the package, for tables."""
    return name.removeprefix(f"{PACKAGE}.")


def heading(level: int, name: str) -> str:
    """A heading for a registered name, with its anchor and a short entry in the contents."""
    place = f'#{anchor(name)} data-toc-label="{short(name)}"'
    return f"{'#' * level} `{name}` {{ {place} }}"
