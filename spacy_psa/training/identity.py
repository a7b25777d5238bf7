"""The identity of a training: its config and the files that it reads."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spacy_psa.scoring.provenance import checksums

BLOCKS = ("nlp", "components", "corpora", "initialize", "training")
# Settings that name files or folders.
FILES = ("path", "vocab_data", "init_tok2vec")
# Settings that name pipelines, each a folder or an installed package.
PIPELINES = ("source", "vectors", "teacher")


def identity(config: dict[str, Any]) -> dict[str, Any]:
    """Return the config of a training, and checksums of the files and folders that it reads.

    `config` has the blocks of the config that bear on the weights, and `data`, {path: MD5}, the
    `named_files`; the paths of a package begin with its name. The variables of the config are
    filled in.
    """
    blocks = {block: config[block] for block in BLOCKS}
    data = {}
    for name, path in named_files(config).items():
        for file, md5 in checksums([path]).items():
            data[Path(name, Path(file).relative_to(path)).as_posix()] = md5
    return {"config": json.loads(json.dumps(blocks)), "data": data}


def named_files(config: dict[str, Any]) -> dict[str, Path]:
    """Find the files and folders that a training reads, by their names in the config.

    They are those of [corpora] and [initialize], pipelines that components are copied from, and
    pretrained transformers. The path of a package is the folder of its pipeline.
    """
    files: dict[str, Path] = {}
    for block in (config["corpora"], config["initialize"], config["components"]):
        files.update(_files(block))
    return {name: files[name] for name in sorted(files) if files[name].exists()}


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The settings and files in which the `identity` of two trainings differs."""
    changed = []
    for block in BLOCKS:
        old, new = before["config"][block], now["config"][block]
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                is_block = isinstance(new.get(key, old.get(key)), dict)
                changed.append(f"[{block}.{key}]" if is_block else f"{key} of [{block}]")
    old, new = before["data"], now["data"]
    paths = sorted(old.keys() | new.keys())
    return changed + [path for path in paths if old.get(path) != new.get(path)]


def _files(block: dict[str, Any]) -> Iterator[tuple[str, Path]]:
    for key, value in block.items():
        if isinstance(value, dict):
            yield from _files(value)
        elif isinstance(value, str) and value:
            if key in FILES:
                yield value, Path(value)
            elif key in PIPELINES and (folder := _pipeline(value)):
                yield value, folder
    name = block.get("name")
    kind = str(block.get("@architectures"))
    is_transformer = kind.startswith(("spacy-transformers.", "spacy-psa.Pretrained."))
    if is_transformer and isinstance(name, str) and Path(name).is_dir():
        yield name, Path(name)


def _pipeline(name: str) -> Path | None:
    """The folder of a pipeline, as `spacy.load` finds it; None if there is none."""
    from spacy.util import get_model_meta, is_package

    if not is_package(name):  # a package has precedence
        return Path(name)
    spec = find_spec(name)
    folder = Path(spec.origin).parent if spec and spec.origin else None
    if folder is None or not (folder / "meta.json").exists():
        return None
    meta = get_model_meta(folder)
    return folder / f"{meta['lang']}_{meta['name']}-{meta['version']}"
