"""Training configs: read with the settings that override them, checked, made into a pipeline."""

from collections.abc import Iterator
from contextlib import contextmanager
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

    `arguments` are further options of the command, --SECTION.NAME VALUE.
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


def build(path: Path, config: "Config") -> "Language":
    """Make the pipeline of a training config, without labels and weights.

    InputError, which names the file at `path`, if no pipeline can be made of it.
    """
    from spacy.util import load_model_from_config

    with _unmade_as_input_error(path):
        return load_model_from_config(config.interpolate(), auto_fill=True)


def initialize(path: Path, config: "Config", gpu_id: int = -1) -> "Language":
    """Make the pipeline of a training config, ready for its first update.

    InputError, which names the file at `path`, if no pipeline can be made of it.
    """
    from spacy.training.initialize import init_nlp

    from spacy_psa.corpora.docbin import codecs_known

    with _unmade_as_input_error(path), codecs_known():
        return init_nlp(config, use_gpu=gpu_id)


@contextmanager
def _unmade_as_input_error(path: Path) -> Iterator[None]:
    try:
        yield
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
                raise InputError(f"{option}: is not an option; overrides are --SECTION.NAME VALUE")
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
        null: whether a path may be null, since it can be set elsewhere.
    """
    from spacy.util import dot_to_object

    if "training" not in config:
        raise InputError(f"{file}: there is no section [training]; use a training config")
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


def check_values(config: dict[str, Any]) -> None:
    """Check that the settings of a training config have values of the right kind; nothing is built.

    Functions and components that are not known here are not checked: a training may import them.
    """
    from spacy.language import Language
    from spacy.schemas import ConfigSchemaInit, ConfigSchemaNlp, ConfigSchemaTraining, validate
    from spacy.util import registry
    from thinc.api import Config, ConfigValidationError

    whole = Config(Language.default_config).merge(config)
    schemas: dict[str, Any] = {
        "nlp": ConfigSchemaNlp,
        "initialize": ConfigSchemaInit,
        "training": ConfigSchemaTraining,
    }
    for block, schema in schemas.items():
        for message in validate(schema, whole[block]):  # "[dropout] Input should be …"
            key = message[1:].partition("]")[0].partition(" ")[0]
            value = whole[block].get(key)
            if not _is_call(value):
                raise InputError(f"[{block}]: {key} is {value!r}: {message}; correct it")
    sections = dict(_factories(whole["components"], whole["nlp"]["lang"]))
    sections |= {block: whole[block] for block in (*schemas, "corpora")}
    for block, section in sections.items():
        for path, call in _calls(section, block):
            try:
                registry.fill({path: call})
            except ConfigValidationError as error:
                first = error.errors[0]
                names = [name for name in first.get("loc", ()) if name in call]
                given = "".join(f"{name} is {call[name]!r}: " for name in names)
                raise InputError(f"[{path}]: {given}{first['msg']}; correct it") from error


def _factories(components: dict[str, Any], lang: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the sections of components that are created, as calls of their factories."""
    import spacy
    from spacy.util import get_lang_class, registry
    from thinc.api import Config

    try:
        nlp, known = spacy.blank("xx"), get_lang_class(lang)
    except ImportError as error:
        raise InputError(f"[nlp]: lang is {lang!r}: {error}; correct it") from error
    for name, section in components.items():
        factory = section.get("factory")
        if factory is not None and known.has_factory(factory):
            own = {key: value for key, value in section.items() if key != "factory"}
            of_lang = known.get_factory_name(factory)
            function = of_lang if of_lang in registry.factories else factory
            filled = Config(known.get_factory_meta(factory).default_config or {}).merge(own)
            call = {**filled, "@factories": function, "nlp": nlp, "name": name}
            yield f"components.{name}", call


def _calls(section: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the sections that name a function, inner ones first."""
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _calls(value, f"{path}.{key}")
    if _is_call(section):
        yield path, section


def _is_call(value: Any) -> bool:
    """Whether a value is a section that names a function."""
    return isinstance(value, dict) and any(key.startswith("@") for key in value)


def reason(error: Exception) -> str:
    """The message of an error; for an invalid config the settings, without the whole config."""
    from thinc.api import ConfigValidationError

    if isinstance(error, ConfigValidationError):
        return str(ConfigValidationError.from_error(error, show_config=False))
    return str(error)
