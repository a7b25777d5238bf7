"""Plans of experiments: named runs, each a config with settings, trained with several seeds.

    seeds = [1, 2, 3]

    [paths]
    train = "corpus/train.spacy"
    dev = "corpus/dev.spacy"

    [runs.psa]
    config = "configs/ner/psa.cfg"

    [runs.window]
    config = "configs/ner/psa.cfg"
    overrides = {"training.max_epochs" = 3}
    grid = {"components.ner.model.tok2vec.encode.window" = [5, 10, 20]}

The grid stands for a run for each combination of its values.
"""

import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

from spacy_psa.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLES = "configs/experiments"
SHARED = ("paths", "seeds", "layers", "overrides")
PLAN = (*SHARED, "runs")
RUN = ("config", *SHARED, "grid", "final")
SEEDS = ("system.seed", "training.seed")
LOG = re.compile(r"training\.logger\.(logger\.)*output_file")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=+-]*")
LONGEST = 200
"""The most characters in the name of a run; files next to its folder have longer names."""


@dataclass(frozen=True)
class Run:
    """A config with its settings, which is trained once with each seed."""

    name: str
    """The name of the run, and of its folder."""
    config: Path
    layers: tuple[Path, ...]
    """Configs that are laid over it, in this order."""
    settings: Mapping[str, Any]
    """Single settings that replace those of all configs, by dotted path."""
    seeds: tuple[int, ...]
    test: Path | None = None
    """The test corpus, if the run is final."""


@dataclass(frozen=True)
class Plan:
    """The runs of a plan; its name is that of its file, without ".toml"."""

    name: str
    runs: tuple[Run, ...]
    file: Path


def read_toml(path: Path, kind: str, examples: str) -> dict[str, Any]:
    """Read a TOML file; its `kind` ("search space") and a folder of `examples` are for errors."""
    with naming_file(path, examples):
        try:
            return tomllib.loads(path.read_text(encoding="utf8"))
        except FileNotFoundError as error:
            raise InputError(f"{path}: there is no such {kind}; check the path") from error


@contextmanager
def naming_file(path: Path, examples: str) -> Iterator[None]:
    """Name the TOML file in errors about its text or its content; see `read_toml`."""
    try:
        yield
    except InputError:
        raise
    except RecursionError as error:
        raise InputError(
            f"{path}: is nested too deeply; write it as those in {examples}"
        ) from error
    except (OSError, ValueError) as error:  # not TOML, not UTF-8, a number of too many digits
        raise InputError(f"{path}: is not a TOML file ({error}); correct the file") from error


def read_plan(path: Path) -> Plan:
    """Read a plan; the configs and corpora that it names are not read, and need not exist."""
    content = read_toml(path, "plan", EXAMPLES)
    with naming_file(path, EXAMPLES):
        return Plan(path.stem, _runs_of(content, path), path)


def _runs_of(content: Mapping[str, Any], path: Path) -> tuple[Run, ...]:
    _check_keys(content, PLAN, f"{path}")
    shared = _read_shared(content, f"{path}")
    tables = _table(content, "runs", f"{path}")
    if not tables:
        raise InputError(f"{path}: has no run; add one as in {EXAMPLES}, [runs.NAME]")
    runs = [run for name in tables for run in _read_runs(name, tables, shared, path)]
    known: dict[str, Run] = {}
    for run in runs:
        other = known.setdefault(run.name.lower(), run)
        if other is not run:
            raise InputError(
                f"{path}: two runs, {other.name!r} and {run.name!r}, write one result; rename "
                "one, as capital letters and signs such as $ do not make a difference"
            )
    return tuple(runs)


def _read_runs(
    name: str, tables: Mapping[str, Any], shared: Mapping[str, Any], path: Path
) -> Iterator[Run]:
    """Yield the run of a table; with a grid, one for each combination."""
    place = f"{path}: [runs.{name}]"
    table = _table(tables, name, f"{path}: [runs]")
    _check_keys(table, RUN, place)
    if not NAME.fullmatch(name):
        raise InputError(f"{place}: a name has letters, digits and -_.=+ only; rename the run")
    own = _read_shared(table, place)
    config = _value(table, "config", str, place)
    if config is None:
        raise InputError(f"{place}: has no config; add the path of a training config")
    seeds = own["seeds"] or shared["seeds"]
    if not seeds:
        raise InputError(f"{place}: has no seeds; add seeds = [1, 2, 3] to it or to the plan")
    paths = {**shared["paths"], **own["paths"]}
    test = paths.pop("test", None)
    final = bool(_value(table, "final", bool, place))
    if final and test is None:
        raise InputError(f"{place}: is final, but [paths] has no test; add the test corpus")
    settings = {f"paths.{key}": value for key, value in paths.items()}
    last = own["overrides"]  # since a later setting may be a part of an earlier one
    settings |= {key: value for key, value in shared["overrides"].items() if key not in last}
    settings |= last
    grid = _flat(_table(table, "grid", place))
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"{place}: grid: {key} is {values!r}: write a list of values")
        texts = [*map(repr, values)]
        for value in texts:
            if texts.count(value) > 1:
                raise InputError(f"{place}: grid: {key} has {value} twice; leave one out")
    for values in product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        _check_settings({**settings, **chosen}, place)
        whole = "-".join([name, *(_part(key, value) for key, value in chosen.items())])
        if len(whole) > LONGEST:
            raise InputError(
                f"{place}: {whole[:40]}… is too long for the name of a folder; shorten the name of "
                "the run, or make the values of the grid runs of their own"
            )
        yield Run(
            name=whole,
            config=Path(config),
            layers=tuple(map(Path, [*shared["layers"], *own["layers"]])),
            settings={**settings, **chosen},
            seeds=tuple(seeds),
            test=Path(test) if final else None,
        )


def _read_shared(table: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Read the keys that a plan and a run may both have."""
    seeds = _value(table, "seeds", list, place)
    if seeds is not None:
        _check_seeds(seeds, place)
    layers = _value(table, "layers", list, place) or []
    paths = _table(table, "paths", place)
    for key, values in (("layers", layers), ("paths", paths.values())):
        if not all(isinstance(value, str) for value in values):
            raise InputError(f"{place}: {key}: write strings, the paths of files")
    overrides = _flat(_table(table, "overrides", place))
    for key, value in overrides.items():
        if value == {}:
            raise InputError(f"{place}: overrides: {key} is an empty table; leave it out")
    return {"seeds": seeds, "layers": layers, "paths": paths, "overrides": overrides}


def _check_seeds(seeds: list[Any], place: str) -> None:
    if not seeds:
        raise InputError(f"{place}: seeds: write at least one seed, or leave seeds out")
    for seed in seeds:
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
            raise InputError(
                f"{place}: seeds: {seed!r} is not a whole number from 0 on, below 2**32; correct it"
            )
        if seeds.count(seed) > 1:
            raise InputError(f"{place}: seeds: {seed} is there twice; leave one out")


def _check_settings(settings: Mapping[str, Any], place: str) -> None:
    for key, value in settings.items():
        if key in SEEDS:
            raise InputError(f"{place}: {key} is set by seeds; leave it out")
        if LOG.fullmatch(key):
            raise InputError(f"{place}: {key} is the log of each training; leave it out")
        if not _is_finite(value):
            raise InputError(f"{place}: {key} is {value!r}: write numbers that are finite")


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(_is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(known)}"
            raise InputError(f"{place}: {key!r} is not a key of it; {hint}")


def _table(table: Mapping[str, Any], key: str, place: str) -> dict[str, Any]:
    return _value(table, key, dict, place) or {}


def _value(table: Mapping[str, Any], key: str, kind: type, place: str) -> Any:
    """A value of a table; None if it is not there."""
    value = table.get(key)
    if value is not None and not isinstance(value, kind):
        kinds = {str: "a string", bool: "true or false", list: "a list", dict: "a table"}
        raise InputError(f"{place}: {key} is {value!r}: write {kinds[kind]}")
    return value


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """{"a": {"b": 1}} as {"a.b": 1}; a table that is empty or has a registered function stays."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value and not any(name.startswith("@") for name in value):
            flat |= {f"{key}.{name}": inner for name, inner in _flat(value).items()}
        else:
            flat[key] = value
    return flat


def _part(key: str, value: Any) -> str:
    """The part of the name of a run for its place in a grid."""
    letters = "".join(re.findall(r"[A-Za-z0-9_.+-]+", str(value)))
    return f"{key.rpartition('.')[2]}={letters}"
