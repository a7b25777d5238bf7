"""The page of the registered functions of training: optimizers, schedules, readers and so on."""

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from docs.generate.docstrings import arguments, is_google, path
from docs.generate.markdown import NOTE, embedded, parameter_row, table
from docs.generate.registry import heading, names

# Entry point group, heading and introduction.
SECTIONS = [
    (
        "thinc_optimizers",
        "Optimizers",
        "Use an optimizer in `[training.optimizer]`, under `@optimizers`. These optimizers update "
        "all weights of a torch module in one step.",
    ),
    (
        "thinc_schedules",
        "Schedules",
        "A schedule replaces a number, usually in `[training.optimizer.learn_rate]`, under "
        "`@schedules`.",
    ),
    ("spacy_batchers", "Batchers", "Use a batcher in `[training.batcher]`, under `@batchers`."),
    (
        "spacy_readers",
        "Readers",
        "Use a reader in `[corpora.train]` and `[corpora.dev]`, under `@readers`. These readers "
        "can read published files without a conversion.",
    ),
    ("spacy_scorers", "Scorers", "Use a scorer in `[components.NAME.scorer]`, under `@scorers`."),
    ("spacy_loggers", "Loggers", "Use a logger in `[training.logger]`, under `@loggers`."),
    (
        "spacy_callbacks",
        "Callbacks",
        "Use a callback in any setting that expects one, under `@callbacks`.",
    ),
]

GROUPS = {group for group, *_ in SECTIONS}


def page() -> str:
    """The page of all registered names of training."""
    parts = [
        NOTE,
        "# Training",
        "You can use these names in a config for `spacy train`, in addition to those of spaCy and "
        "thinc.",
    ]
    for group, title, text in SECTIONS:
        parts += [f"## {title}", text]
        parts += [_section(name, function) for name, function in names(group).items()]
    return "\n\n".join(parts) + "\n"


def _section(name: str, function: Callable[..., Any]) -> str:
    meanings = arguments(function)
    rows = [
        parameter_row(parameter, meanings.get(parameter.name, ""))
        for parameter in inspect.signature(function, eval_str=True).parameters.values()
        if parameter.kind is not Parameter.VAR_POSITIONAL
    ]
    parts = [
        heading(3, name),
        table(("argument", "type", "default", "meaning"), rows),
        embedded(
            path(function), show_docstring_parameters=not is_google(function), heading_level=4
        ),
    ]
    return "\n\n".join(part for part in parts if part)
