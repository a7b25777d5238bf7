"""The docstrings of the package, read by griffe, which mkdocstrings also uses."""

import inspect
import logging
import re
from typing import Any

import griffe

logging.getLogger("griffe").setLevel(logging.ERROR)

AS_IN = re.compile(r"as in `(\w+)`\.")


def arguments(*objects: Any) -> dict[str, str]:
    """The descriptions in the Args sections of some objects; the first object wins.

    A class also has those of its bases and of their constructors.
    """
    meanings: dict[str, str] = {}
    for item in objects:
        for base in item.__mro__[:-1] if inspect.isclass(item) else [item]:
            # Without the docstring that a class inherits.
            own = vars(base).get("__doc__") if inspect.isclass(base) else base.__doc__
            for text in (own, _constructor(base)):
                for name, description in _arguments(text).items():
                    meanings.setdefault(name, _looked_up(name, description, base))
    return meanings


def _looked_up(name: str, description: str, item: Any) -> str:
    """The description, or that of another object of the module: "as in `adam`."."""
    as_in = AS_IN.fullmatch(description)
    if as_in is None:
        return description
    return arguments(getattr(inspect.getmodule(item), as_in[1]))[name]


def summary(item: Any) -> str:
    """The first sentence of a docstring."""
    return first_sentence(inspect.getdoc(item) or "")


def first_sentence(text: str) -> str:
    """The first sentence of a text, with its full stop."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    end = paragraph.find(". ")
    return paragraph if end < 0 else paragraph[: end + 1]


def is_google(item: Any) -> bool:
    """Whether a docstring has a section for its arguments, so that the page may show them."""
    return bool(_arguments(inspect.getdoc(item)))


def path(item: Any) -> str:
    """The dotted name of an object for mkdocstrings."""
    return f"{item.__module__}.{item.__qualname__}"


def _constructor(item: Any) -> str | None:
    init = vars(item).get("__init__") if inspect.isclass(item) else None
    return None if init is None else init.__doc__


def _arguments(text: str | None) -> dict[str, str]:
    if not text:
        return {}
    docstring = griffe.Docstring(inspect.cleandoc(text), lineno=1)
    return {
        name.lstrip("*"): " ".join(parameter.description.split())
        for section in docstring.parse("google", warnings=False)
        if section.kind is griffe.DocstringSectionKind.parameters
        for parameter in section.value
        for name in parameter.name.split(", ")
    }
