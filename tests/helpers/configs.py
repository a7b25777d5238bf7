"""The config files of the repository, as spaCy reads, fills and resolves them."""

from collections.abc import Iterator
from typing import Any

from spacy.schemas import ConfigSchemaTraining
from spacy.util import load_config, load_model_from_config, registry
from thinc.api import Config

from tests.helpers.paths import CONFIGS


def read(name: str, **overrides: Any) -> Config:
    """The config "ner/psa" or the like, its variables as they stand.

    overrides: as those of `spacy train`, with "__" for each dot.
    """
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return load_config(CONFIGS / f"{name}.cfg", overrides=dotted)


def filled(config: Config) -> Config:
    """As `spacy init fill-config` writes it, with variables left as they are."""
    return load_model_from_config(config, auto_fill=True).config


def training_of(config: Config) -> dict[str, Any]:
    """The [training] section of a config as `spacy train` resolves it."""
    section = filled(config).interpolate()["training"]
    return registry.resolve(section, schema=ConfigSchemaTraining)


def flat(section: dict[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting of a config, under its dotted name."""
    for key, value in section.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


def settings_of(name: str, **overrides: Any) -> dict[str, Any]:
    """Every setting of a config, with the values of its variables."""
    return dict(flat(read(name, **overrides).interpolate()))
