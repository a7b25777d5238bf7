"""`spacy-psa merge-config`: one training config from those of a model and a corpus."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_psa.errors import InputError

USAGE = (
    "give a setting and its value, as training.max_epochs=3, or a section and its settings, "
    'as training.optimizer={"@optimizers":"spacy-psa.Adam.v1"}'
)


def merge_config(
    base: Annotated[Path, typer.Argument(metavar="BASE.cfg", help="Complete training config.")],
    settings: Annotated[
        Path,
        typer.Argument(metavar="SETTINGS.cfg", help="Settings that replace those of BASE.cfg."),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.cfg", help="Config to write.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings that replace those of both files."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="File to which the training logs its scores, as JSON lines.")
    ] = None,
) -> None:
    """Combine a training config with settings of a corpus.

    Writes OUT.cfg for `spacy train`: BASE.cfg, where the settings of SETTINGS.cfg and then those on
    the command line replace the original ones. Variables such as ${paths.train} stay variables. A
    section that BASE.cfg does not have is an error, because it would be a typing error; only
    [initialize.components.NAME] may be new.

    SETTINGS.cfg may have a section [corpus] with the number of training `sentences`. Then OUT.cfg
    evaluates, stops and lowers the learning rate after the same numbers of epochs as BASE.cfg, but
    epochs of this corpus. BASE.cfg must evaluate once in each epoch.

    A VALUE is JSON, as for `spacy train`, or else a string. A section takes a JSON object, whose
    settings replace those of the section; if it names another function, it replaces the section.

    \b
    Example:
      spacy-psa merge-config configs/ner/psa.cfg configs/corpora/conll2003.cfg \\
          config.cfg training.max_epochs=3
    """
    from thinc.api import Config

    from spacy_psa.corpora.atomic import atomic_path

    whole, part = _read(base), _read(settings)
    sentences = part.pop("corpus", {}).get("sentences")
    _check(part, whole, settings, base)
    merged = Config(whole).merge(part)
    chosen = chosen_settings(values or [], merged, base)
    merged = merged.merge(chosen)
    if sentences is not None:
        _check_sentences(sentences, settings)
        fit_epochs(merged["training"], whole["training"], sentences)
        merged = merged.merge(chosen)  # settings of the command line are not fitted
    if log is not None:
        log_to(merged, log)
    with atomic_path(target) as temporary:
        merged.to_disk(temporary, interpolate=False)
    typer.echo(f"{base} + {settings} -> {target}")


def _read(path: Path) -> dict[str, Any]:
    from configparser import Error

    from thinc.api import Config, ConfigValidationError

    try:
        return Config().from_disk(path, interpolate=False)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such config; check the path") from error
    except (ConfigValidationError, Error, ValueError) as error:
        raise InputError(f"{path}: is not a config ({error}); correct the file") from error


def _check(
    part: dict[str, Any], whole: dict[str, Any], settings: Path, base: Path, at: str = ""
) -> None:
    if at == "initialize.components.":
        return  # the settings with which a component of any name is initialized
    for key, value in part.items():
        if isinstance(value, dict):
            if not isinstance(whole.get(key), dict):
                raise InputError(
                    f"{settings}: [{at}{key}]: {base} has no such section; correct the name"
                )
            _check(value, whole[key], settings, base, f"{at}{key}.")


def chosen_settings(values: list[str], config: dict[str, Any], base: Path) -> dict[str, Any]:
    """Read ["a.b=1"] as {"a": {"b": 1}}.

    Args:
        values: the settings, as the command line has them.
        config: the config, which must have these settings.
        base: its file, for errors.

    Raises:
        InputError: if it lacks one.
    """
    import srsly
    from spacy.util import dot_to_dict, dot_to_object

    found = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"{text}: has no '='; {USAGE}")
        try:
            held = dot_to_object(config, key)  # type: ignore[arg-type]
        except (KeyError, TypeError) as error:
            raise InputError(f"{text}: {base} has no setting {key!r}; correct the name") from error
        try:
            found[key] = srsly.json_loads(value)
        except ValueError:
            found[key] = value
        if isinstance(held, dict) and not isinstance(found[key], dict):
            raise InputError(f"{text}: {key} is a section; {USAGE}")
    return dot_to_dict(found)


def log_to(config: dict[str, Any], log: Path) -> None:
    """Let the logger of a training write its scores to a file."""
    logger = config["training"]["logger"]
    while "logger" in logger:  # inside a logger that listens to it
        logger = logger["logger"]
    logger["output_file"] = str(log)


def _check_sentences(sentences: Any, settings: Path) -> None:
    if not isinstance(sentences, int) or sentences < 1:
        raise InputError(
            f"{settings}: [corpus]: sentences is {sentences!r}: take a whole number of 1 or more"
        )


def fit_epochs(training: dict[str, Any], base: dict[str, Any], sentences: int) -> None:
    """Convert the steps of a training to epochs of a corpus.

    If batches do not have a fixed number of sentences, the steps stay as they are.

    Args:
        training: the section [training], which is changed.
        base: the section as it was, which evaluates once in each epoch.
        sentences: the number of training sentences.
    """
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
