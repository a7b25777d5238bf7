"""By what a training is told from another one: its config and the files that it reads."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_psa.scoring.provenance import checksums

BLOCKS = ("nlp", "components", "corpora", "initialize", "training")
# Settings that name files or folders.
FILES = ("path", "vectors", "vocab_data", "init_tok2vec", "teacher")


def identity(config: dict[str, Any]) -> dict[str, Any]:
    """The config of a training, and checksums of the files and folders that it reads.

    Args:
        config: the config, with its variables filled in.

    Returns:
        `config`, the blocks of the config that bear on the weights, and `data`, {path: MD5} of
        the `named_files`.
    """
    blocks = {block: config[block] for block in BLOCKS}
    return {"config": json.loads(json.dumps(blocks)), "data": checksums(named_files(config))}


def named_files(config: dict[str, Any]) -> list[Path]:
    """The files and folders that a training reads and that are there, sorted.

    They are what [corpora] and [initialize] name, pipelines whose components are taken over, and
    pretrained transformers.

    Args:
        config: the config, with its variables filled in.
    """
    named = {*_files(config["corpora"]), *_files(config["initialize"])}
    models = {path for path in _models(config["components"]) if Path(path).is_dir()}
    return sorted(path for path in map(Path, named | models) if path.exists())


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The settings and files in which two trainings differ.

    Examples:
        >>> def made(size):
        ...     blocks = dict.fromkeys(BLOCKS, {}) | {"training": {"seed": 0, "batcher": size}}
        ...     return identity(blocks)
        >>> differences(made({"size": 3}), made({"size": 4}))
        ['[training.batcher]']
    """
    found = []
    for block in BLOCKS:
        old, new = before["config"][block], now["config"][block]
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                is_block = isinstance(new.get(key, old.get(key)), dict)
                found.append(f"[{block}.{key}]" if is_block else f"{key} of [{block}]")
    old, new = before["data"], now["data"]
    paths = sorted(old.keys() | new.keys())
    return found + [path for path in paths if old.get(path) != new.get(path)]


def _files(block: dict[str, Any]) -> Iterator[str]:
    for key, value in block.items():
        if isinstance(value, dict):
            yield from _files(value)
        elif key in FILES and isinstance(value, str) and value:
            yield value


def _models(components: dict[str, Any]) -> Iterator[str]:
    """Names of models, which may be folders."""
    from spacy.util import is_package

    for component in components.values():
        source = component.get("source")
        if isinstance(source, str) and not is_package(source):  # a package has precedence
            yield source
        yield from _transformers(component)


def _transformers(block: dict[str, Any]) -> Iterator[str]:
    for value in block.values():
        if isinstance(value, dict):
            yield from _transformers(value)
    name = block.get("name")
    if str(block.get("@architectures")).startswith("spacy-transformers.") and isinstance(name, str):
        yield name
