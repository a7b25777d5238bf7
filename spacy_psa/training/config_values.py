"""Checks the values of a training config against what takes them, before anything is built."""

from collections.abc import Iterator
from typing import Any

from spacy_psa.errors import InputError


def check_values(config: dict[str, Any]) -> None:
    """Check that the settings of a training config have values of the right kind; nothing is built.

    Functions and components that are not known here are not checked: a training may import them.

    Args:
        config: the config, with its variables filled in.

    Raises:
        InputError: if the function, the component or the section of a setting does not take its
            value, or lacks one.
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
        for said in validate(schema, whole[block]):  # "[dropout] Input should be …"
            key = said[1:].partition("]")[0].partition(" ")[0]
            value = whole[block].get(key)
            if not _is_call(value):
                raise InputError(f"[{block}]: {key} is {value!r}: {said}; correct it")
    components = dict(_factories(whole["components"], whole["nlp"]["lang"]))
    for block in (*schemas, "corpora"):
        components |= {block: whole[block]}
    for block, section in components.items():
        for path, call in _calls(section, block):
            try:
                registry.fill({path: call})
            except ConfigValidationError as error:
                first = error.errors[0]
                names = [name for name in first.get("loc", ()) if name in call]
                given = "".join(f"{name} is {call[name]!r}: " for name in names)
                raise InputError(f"[{path}]: {given}{first['msg']}; correct it") from error


def _factories(components: dict[str, Any], lang: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the sections of components that are made anew, as calls of their factories."""
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
