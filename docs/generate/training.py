"""The page of what a training config registers: optimizers, schedules, readers and so on."""

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from docs.generate.docstrings import arguments, is_google, path
from docs.generate.markdown import NOTE, embedded, kind, table, value
from docs.generate.registry import heading, names

# Entry point group, heading, what it is for, and where it stands in a config.
SECTIONS = [
    (
        "thinc_optimizers",
        "Optimizers",
        "An optimizer stands in `[training.optimizer]`, under `@optimizers`. These optimizers "
        "update all weights of a torch module in one step.",
    ),
    (
        "thinc_schedules",
        "Schedules",
        "A schedule stands in the place of a number, mostly in "
        "`[training.optimizer.learn_rate]`, under `@schedules`.",
    ),
    (
        "spacy_batchers",
        "Batchers",
        "A batcher stands in `[training.batcher]`, under `@batchers`.",
    ),
    (
        "spacy_readers",
        "Readers",
        "A reader stands in `[corpora.train]` and `[corpora.dev]`, under `@readers`. These "
        "readers read published files without a conversion.",
    ),
    (
        "spacy_scorers",
        "Scorers",
        "A scorer stands in `[components.NAME.scorer]`, under `@scorers`.",
    ),
    (
        "spacy_loggers",
        "Loggers",
        "A logger stands in `[training.logger]`, under `@loggers`.",
    ),
    (
        "spacy_callbacks",
        "Callbacks",
        "A callback stands where a config asks for one, under `@callbacks`.",
    ),
]

GROUPS = {group for group, *_ in SECTIONS}


def page() -> str:
    """The page of all registered names of training."""
    parts = [
        NOTE,
        "# Training",
        "These names can stand in a config for `spacy train`, beside spaCy's and thinc's own.",
    ]
    for group, title, text in SECTIONS:
        found = names(group)
        parts += [f"## {title}", text]
        parts += [_section(name, function) for name, function in found.items()]
    return "\n\n".join(parts) + "\n"


def _section(name: str, function: Callable[..., Any]) -> str:
    meanings = arguments(function)
    rows = [
        (
            f"`{p.name}`",
            kind(p.annotation),
            value(p.default),
            meanings.get(p.name, ""),
        )
        for p in inspect.signature(function, eval_str=True).parameters.values()
        if p.kind is not Parameter.VAR_POSITIONAL
    ]
    parts = [
        heading(3, name),
        table(("argument", "type", "default", "meaning"), rows),
        embedded(
            path(function), show_docstring_parameters=not is_google(function), heading_level=4
        ),
    ]
    return "\n\n".join(part for part in parts if part)
