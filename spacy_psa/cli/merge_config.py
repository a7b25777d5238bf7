"""`spacy-psa merge-config`: one training config from a model's and a corpus' settings."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_psa.errors import InputError


def merge_config(
    base: Annotated[Path, typer.Argument(help="A whole training config.")],
    settings: Annotated[Path, typer.Argument(help="Settings that take its settings' place.")],
    target: Annotated[Path, typer.Argument(metavar="OUT.cfg", help="The config to write.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings that take the place of both's."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Where the training is to log its scores, as JSON lines.")
    ] = None,
) -> None:
    """Lay the settings of one config over another and write the result for `spacy train`.

    Variables (${paths.train}) stay variables. Sections that the base lacks are an
    error, since they would be typing errors, but for [initialize.components.NAME]. A
    section [corpus] with the number of training sentences makes what the base counts in
    epochs, which it must evaluate once each, as many epochs of this corpus. A value is
    JSON, as for `spacy train`, or else a string: training.max_epochs=3. Wei2019 section takes a
    JSON object, which is laid over it, or replaces it where it names another function.
    """
    from thinc.api import Config

    from spacy_psa.corpora.atomic import atomic_path

    whole, part = _read(base), _read(settings)
    sentences = part.pop("corpus", {}).get("sentences")
    _check(part, whole, settings, base)
    merged = Config(whole).merge(part)
    chosen = _chosen(values or [], merged, base)
    merged = merged.merge(chosen)
    if sentences is not None:
        _fit_epochs(merged["training"], whole["training"], sentences, settings)
        merged = merged.merge(chosen)  # what is chosen is not fitted
    if log is not None:
        logger = merged["training"]["logger"]
        while "logger" in logger:  # inside of one that listens
            logger = logger["logger"]
        logger["output_file"] = str(log)
    with atomic_path(target) as temporary:
        merged.to_disk(temporary, interpolate=False)
    typer.echo(f"{base} + {settings} -> {target}")


def _read(path: Path) -> dict[str, Any]:
    from configparser import Error

    from thinc.api import Config, ConfigValidationError

    try:
        return Config().from_disk(path, interpolate=False)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such config") from error
    except (ConfigValidationError, Error, ValueError) as error:
        raise InputError(f"{path}: not a config ({error})") from error


def _check(
    part: dict[str, Any], whole: dict[str, Any], settings: Path, base: Path, at: str = ""
) -> None:
    if at == "initialize.components.":
        return  # what a component is initialized with, of whatever name
    for key, value in part.items():
        if isinstance(value, dict):
            if not isinstance(whole.get(key), dict):
                raise InputError(f"{settings}: [{at}{key}]: {base} has no such section")
            _check(value, whole[key], settings, base, f"{at}{key}.")


def _chosen(values: list[str], config: dict[str, Any], base: Path) -> dict[str, Any]:
    """["a.b=1"] as {"a": {"b": 1}}, of settings that the config has."""
    import srsly
    from spacy.util import dot_to_dict, dot_to_object

    found = {}
    for text in values:
        key, equals, value = text.partition("=")
        try:
            held = dot_to_object(config, key)  # type: ignore[arg-type]
        except (KeyError, TypeError) as error:
            raise InputError(f"{text}: {base} has no setting {key!r}") from error
        try:
            found[key] = srsly.json_loads(value)
        except ValueError:
            found[key] = value
        if not equals or (isinstance(held, dict) and not isinstance(found[key], dict)):
            raise InputError(
                f"{text}: give a setting and its value, as training.max_epochs=3, or a section "
                'and its settings, as training.optimizer={"@optimizers":"spacy-psa.Adam.v1"}'
            )
    return dot_to_dict(found)


def _fit_epochs(
    training: dict[str, Any], base: dict[str, Any], sentences: Any, settings: Path
) -> None:
    """Count the steps of `training` in epochs of `sentences`, where the base counts in its own.

    Batches that are not of a number of sentences leave the steps as they are.
    """
    if not isinstance(sentences, int) or sentences < 1:
        raise InputError(f"{settings}: [corpus]: sentences is {sentences!r}, not a number from 1")
    size, epoch = training["batcher"].get("size"), base["eval_frequency"]
    if not isinstance(size, int):
        return
    steps = math.ceil(sentences / size)
    training["eval_frequency"] = steps
    training["patience"] = training["patience"] * steps // epoch
    rate = training["optimizer"].get("learn_rate")
    if isinstance(rate, dict) and "steps_per_epoch" in rate:
        rate["steps_per_epoch"] = steps
    if isinstance(rate, dict) and rate.get("total_steps") == base["max_epochs"] * epoch:
        rate["total_steps"] = training["max_epochs"] * steps
