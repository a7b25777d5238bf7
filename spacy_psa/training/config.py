"""Training configs: read with the settings that override them, checked, made into a pipeline."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from thinc.api import Config

READERS = ("spacy.Corpus.", "spacy-psa.")
"""How the names of readers begin that cannot do without a path."""


def read_training_config(path: Path, arguments: list[str]) -> "Config":
    """Read a config as `spacy train` does; its variables stay variables.

    Args:
        path: the config.
        arguments: further options of the command, --SECTION.NAME VALUE.

    Raises:
        InputError: if the file is no config, if it lacks a setting that an option overrides, or if
            one of its corpora is a file that is not there.
    """
    from configparser import Error

    from spacy.cli._util import parse_config_overrides
    from spacy.util import load_config
    from thinc.api import ConfigValidationError

    if not path.is_file():
        raise InputError(f"{path}: there is no such config; check the path")
    _check_options(arguments)
    try:
        config = load_config(path, parse_config_overrides(list(arguments)), interpolate=False)
        check_corpora(path, config.interpolate())
    except InputError:
        raise
    except (ConfigValidationError, Error, ValueError) as error:
        raise InputError(
            f"{path}: is not a config, or an override names a setting that it does not have "
            f"({reason(error)})"
        ) from error
    return config


def initialize(path: Path, config: "Config", gpu_id: int = -1) -> "Language":
    """Make the pipeline of a training config, ready for its first update.

    Args:
        path: the file of the config, for errors.
        config: the config.
        gpu_id: the number of the GPU; -1 for the CPU.

    Raises:
        InputError: if no pipeline can be made of it.
    """
    from spacy.training.initialize import init_nlp

    from spacy_psa.corpora.docbin import codecs_known

    try:
        with codecs_known():
            return init_nlp(config, use_gpu=gpu_id)
    except InputError:
        raise
    except (ValueError, KeyError, OSError) as error:
        raise InputError(
            f"{path}: no pipeline can be made of this config ({reason(error)}); correct it, or "
            "the file that it names"
        ) from error


def _check_options(arguments: list[str]) -> None:
    takes_value = False
    for word in arguments:
        if word.startswith("--"):
            option, equals, _ = word.partition("=")
            if "." not in option:
                raise InputError(f"{option}: is no option; overrides are --SECTION.NAME VALUE")
            takes_value = not equals
        elif takes_value:
            takes_value = False
        else:
            raise InputError(
                f"{word}: is an unexpected argument; overrides are --SECTION.NAME VALUE"
            )


def check_corpora(file: Path, config: dict[str, Any], null: bool = True) -> None:
    """Check that the corpora of a training config are there.

    Args:
        file: the file of the config, for errors.
        config: the config, with its variables filled in.
        null: whether a path may be null, since something else can give it.

    Raises:
        InputError: if the config has no [training], or names a corpus that is not there, or whose
            path is null.
    """
    from spacy.util import dot_to_object

    if "training" not in config:
        raise InputError(f"{file}: there is no section [training]; give a training config")
    for key in ("train_corpus", "dev_corpus"):
        name = config["training"].get(key)
        try:
            corpus = dot_to_object(config, name)  # type: ignore[arg-type]
            path, reader = corpus.get("path"), corpus.get("@readers", "")
        except (KeyError, AttributeError) as error:
            raise InputError(
                f"{file}: {key} of [training] is {name!r}, and there is no such section; correct it"
            ) from error
        if path is None and not null and reader.startswith(READERS):
            raise InputError(f"{file}: the path of [{name}] is null; set it, as in [paths]")
        if isinstance(path, str) and not Path(path).exists():
            raise InputError(
                f"{path}: there is no such file or folder, and [{name}] names it; check the path"
            )


def reason(error: Exception) -> str:
    """What an error says; of a config that is not valid, the settings and not the whole config."""
    from thinc.api import ConfigValidationError

    if isinstance(error, ConfigValidationError):
        return str(ConfigValidationError.from_error(error, show_config=False))
    return str(error)
