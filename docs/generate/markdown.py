"""Markdown of the reference pages: tables, values and types as in a config."""

import json
import types
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from spacy.language import Language
from spacy.vocab import Vocab
from thinc.api import Model

NOTE = "<!-- Generated from the code by `python -m docs.generate`. Do not edit. -->\n"
PLAIN = {
    int: "int",
    float: "float",
    str: "str",
    bool: "bool",
    Path: "path",
    dict: "dict",
    Any: "any",
    Language: "pipeline",
    Vocab: "vocabulary",
}


def cell(text: str) -> str:
    """Text for one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty if there are no rows."""
    lines = [list(header), ["---"] * len(header), *rows]
    if len(lines) == 2:
        return ""
    return "\n".join("| " + " | ".join(cell(c) for c in line) + " |" for line in lines)


def value(default: Any) -> str:
    """A default as in a config; "required" if there is none."""
    if default is Parameter.empty:
        return "required"
    if isinstance(default, Enum):
        default = default.value
    if isinstance(default, Path):
        default = str(default)
    if isinstance(default, tuple):
        default = list(default)
    if callable(default):
        return f"`{getattr(default, '__name__', default)}`"
    return f"`{json.dumps(default, ensure_ascii=False)}`"


def parameter_row(parameter: Parameter, meaning: str) -> tuple[str, str, str, str]:
    """The row of a table for an argument: its name, type, default and meaning."""
    shown = kind(parameter.annotation), value(parameter.default)
    return (f"`{parameter.name}`", *shown, meaning)


def kind(annotation: Any) -> str:
    """A type in the words of a config."""
    if annotation is Parameter.empty:
        return ""
    if annotation is None or annotation is type(None):
        return "null"
    if annotation in PLAIN:
        return PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{item.value}`" for item in annotation)
    origin = get_origin(annotation)
    if origin is Literal:
        return " or ".join(f'`"{choice}"`' for choice in get_args(annotation))
    if origin in (Union, types.UnionType):
        kinds = [kind(part) for part in get_args(annotation)]
        kinds = ["schedule" if k == "list of float" and "float" in kinds else k for k in kinds]
        return " or ".join(kinds)
    if annotation is Model or origin is Model:
        return "model"
    if origin in (list, tuple) or _is(origin, Sequence) or _is(origin, Iterable):
        arguments = [part for part in get_args(annotation) if part is not Ellipsis]
        inner = kind(arguments[0]) if arguments else "any"
        return f"list of {inner}"
    if _is(origin, Callable) or _is(annotation, Callable):
        return "function"
    return getattr(annotation, "__name__", str(annotation))


def _is(origin: Any, wanted: Any) -> bool:
    return origin is not None and origin in (wanted, get_origin(wanted))


def embedded(identifier: str, **options: Any) -> str:
    """A block that mkdocstrings fills with the docstring of an object."""
    settings = {
        "show_root_heading": False,
        "show_root_toc_entry": False,
        "members": [],
        "inherited_members": False,
        **options,
    }
    lines = [f"::: {identifier}", "    options:"]
    lines += [f"      {key}: {json.dumps(setting)}" for key, setting in settings.items()]
    return "\n".join(lines)
