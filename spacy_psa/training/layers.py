"""One training config from several: that of a model, layers over it, and single settings."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from thinc.api import Config

USAGE = (
    "write a setting and its value, as training.max_epochs=3, or a section and its settings, "
    'as training.optimizer={"@optimizers":"spacy-psa.Adam.v1"}'
)


def layered(base: Path, layers: Sequence[Path], values: Mapping[str, Any]) -> "Config":
    """Lay configs and then single settings over a config; variables stay variables.

    A layer may have a section [corpus] with the number of training `sentences`, and of their
    `words`. Then the steps of the base are converted to the same numbers of epochs of that corpus,
    and those of the whole training to `max_epochs` if a layer or a setting has it; the base must
    evaluate once in each epoch.

    Args:
        base: the file of a complete training config.
        layers: files with settings that replace those of the base, in this order.
        values: settings that replace those of all files, by dotted path; a string that is JSON is
            read as JSON.
    """
    from thinc.api import Config

    whole = read_config(base)
    merged = Config(whole)
    sizes: dict[str, int] = {}
    for layer in layers:
        part = read_config(layer)
        corpus = part.pop("corpus", {})
        _check(part, whole, layer, base)
        merged = merged.merge(part)
        sizes |= _checked_sizes(corpus, layer)
    merged = with_settings(merged, values, base)
    if sizes:
        _check_unit(merged["training"]["batcher"], sizes, base)
        fit_epochs(merged["training"], whole["training"], sizes)
        # Single settings are not fitted.
        of_training = {k: v for k, v in values.items() if k.partition(".")[0] == "training"}
        merged = with_settings(merged, of_training, base)
    return merged


def set_log(config: dict[str, Any], log: Path) -> None:
    """Let a training write its scores to a file, as JSON lines."""
    logger = config["training"]["logger"]
    while "logger" in logger:  # inside a logger that listens to it
        logger = logger["logger"]
    logger["output_file"] = str(log)


def read_config(path: Path) -> "Config":
    """Read a config; its variables stay variables. InputError if there is no such config."""
    from configparser import Error

    from thinc.api import Config, ConfigValidationError

    try:
        return Config().from_disk(path, interpolate=False)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such config; check the path") from error
    except (ConfigValidationError, Error, ValueError, OSError) as error:
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


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """Read settings of a command line, SETTING=VALUE; InputError for a text without "="."""
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"{text}: has no '='; {USAGE}")
        values[key] = value
    return values


def with_settings(config: "Config", values: Mapping[str, Any], base: Path) -> "Config":
    """Replace single settings of a config, one after the other, so that a later one wins.

    Args:
        config: the config, which must have these settings. It stays as it is.
        values: settings by dotted path; a string that is JSON is read as JSON.
    """
    import srsly
    from spacy.util import dot_to_dict

    for key, value in values.items():
        held = _held(key, config, base)
        if isinstance(value, str):
            with suppress(ValueError):  # other text stays as it is
                value = srsly.json_loads(value)
        if isinstance(held, dict) and not isinstance(value, dict):
            raise InputError(f"{key} is a section; {USAGE}")
        config = config.merge(dot_to_dict({key: value}))
    return config


def _held(key: str, config: dict[str, Any], base: Path) -> Any:
    """The setting or section at a path; None for a setting that is left to its default."""
    at: Any = config
    names = key.split(".")
    for place, name in enumerate(names, 1):
        if not isinstance(at, dict) or name not in at:
            if place == len(names) and isinstance(at, dict) and name in _arguments(at):
                return None
            near = get_close_matches(name, at if isinstance(at, dict) else [], 1)
            hint = f"; did you mean {near[0]!r} for {name!r}?" if near else "; correct the name"
            raise InputError(f"{base} has no setting {key!r}{hint}")
        at = at[name]
    return at


def _arguments(section: Mapping[str, Any]) -> Iterable[str]:
    """The settings of the function or the component of a section."""
    from inspect import signature

    import spacy
    from catalogue import RegistryError
    from spacy.util import registry

    names = {key[1:]: name for key, name in section.items() if key.startswith("@")}
    if "factory" in section:
        spacy.blank("xx")  # makes spaCy look for the components of other packages
        names = {"factories": section["factory"]}
    for kind, name in names.items():
        with suppress(RegistryError):
            return signature(registry.get(kind, name)).parameters
    return ()


def _checked_sizes(corpus: Mapping[str, Any], settings: Path) -> Mapping[str, int]:
    for name, count in corpus.items():
        if not isinstance(count, int) or count < 1:
            raise InputError(
                f"{settings}: [corpus]: {name} is {count!r}: write a whole number, 1 or more"
            )
    return corpus


def batch_unit(batcher: Mapping[str, Any]) -> str:
    """Find out whether the size of a batch counts "words" or "sentences"."""
    name = batcher.get("@batchers", "")
    return "words" if "words" in name or "padded" in name else "sentences"


def _check_unit(batcher: Mapping[str, Any], sizes: Mapping[str, int], base: Path) -> None:
    unit = batch_unit(batcher)
    if isinstance(batcher.get("size"), int) and unit not in sizes:
        raise InputError(
            f"{base} with these settings: [training.batcher] counts in {unit}: add {unit!r}, the "
            f"number of {unit} of the training data, to [corpus]"
        )


def fit_epochs(training: dict[str, Any], base: dict[str, Any], sizes: Mapping[str, int]) -> None:
    """Convert the steps of a training to epochs of a corpus.

    They become steps of as many epochs as in the base, or of `max_epochs` where the training has
    another number of them than the base. If batches do not have a fixed number of sentences or
    words, the steps stay as they are.

    Args:
        training: the section [training], which is changed.
        base: the section as it was, which evaluates once in each epoch.
        sizes: the number of training `sentences`, or of their `words` if `batch_unit` is that.
    """
    size, unit = training["batcher"].get("size"), batch_unit(training["batcher"])
    if not isinstance(size, int):
        return
    steps, epoch = math.ceil(sizes[unit] / size), base["eval_frequency"]
    passes, those_of_base = (section.get("max_epochs", 0) for section in (training, base))
    asked = isinstance(passes, int) and passes > 0 and passes != those_of_base

    def whole(count: int) -> int:
        """Convert the steps of a whole training."""
        return passes * steps if asked else count * steps // epoch

    training["eval_frequency"] = steps
    training["patience"] = training["patience"] * steps // epoch
    most = base.get("max_steps", 0)  # 0 for no limit; a variable stands for the steps of the rate
    if isinstance(most, int) and most and training["max_steps"] == most:
        training["max_steps"] = whole(most)
    rate = training["optimizer"].get("learn_rate")
    if not isinstance(rate, dict):
        return
    if "steps_per_epoch" in rate:
        rate["steps_per_epoch"] = steps
    total = rate.get("total_steps")
    if isinstance(total, int) and (isinstance(most, str) or total in (most, those_of_base * epoch)):
        rate["total_steps"] = whole(total)
    warmup, before = rate.get("warmup_steps"), base["optimizer"].get("learn_rate")
    if warmup and isinstance(before, dict) and before.get("warmup_steps") == warmup:
        rate["warmup_steps"] = max(1, warmup * steps // epoch)
