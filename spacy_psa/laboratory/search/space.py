"""Search spaces: settings of a config and their possible values, as TOML.

    [training.optimizer.learn_rate.max_rate]
    type = "float"
    low = 1e-4
    high = 1e-2
    log = true

A setting may also be one line. Names that a bare key cannot hold are quoted:

    "components.ner.model.tok2vec.embed.*.words.width" = {type = "categorical", choices = [50, 100]}
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.plan import naming_file, read_toml

if TYPE_CHECKING:
    from optuna.trial import Trial

Space = dict[str, dict[str, Any]]
"""Maps the dotted path of each setting to its `type` and bounds."""

OPTIONS = {
    "float": {"low", "high", "log", "step"},
    "int": {"low", "high", "log", "step"},
    "categorical": {"choices"},
}

LARGEST = 2**53
"""Up to here Optuna holds whole numbers exactly."""

ENTRY = {"type"}.union(*OPTIONS.values())


def read_space(path: Path) -> Space:
    """Read and check a search space."""
    content = read_toml(path, "search space", "configs/search")
    with naming_file(path, "configs/search"):
        space = dict(_entries(content, path))
    if not space:
        raise InputError(f"{path}: no setting to search; add one as in configs/search")
    for name, entry in space.items():
        reason = _wrong(entry)
        if reason:
            raise InputError(f"{path}: {name}: {reason}")
    return space


def check_names(space: Space, config: Mapping[str, Any], path: Path) -> None:
    """Check that the config has every setting of a search space, whose file is at `path`."""
    for name in space:
        at: Any = config
        for i, key in enumerate(name.split(".")):
            if not isinstance(at, dict) or key not in at:
                keys = list(at) if isinstance(at, dict) else []
                near = get_close_matches(key, keys, 1)
                where = f"[{'.'.join(name.split('.')[:i])}]" if i else "its sections"
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise InputError(f"{path}: {name}: the config has no {key!r} in {where}{hint}")
            at = at[key]
        if isinstance(at, dict):
            raise InputError(
                f"{path}: {name}: is a section of the config, not a setting; "
                "name one of its settings"
            )


def suggest(trial: "Trial", space: Space) -> dict[str, Any]:
    """Draw a value for each setting, {dotted path: value}."""
    return {name: _suggest(trial, name, entry) for name, entry in space.items()}


def _suggest(trial: "Trial", name: str, entry: dict[str, Any]) -> Any:
    if entry["type"] == "categorical":
        return trial.suggest_categorical(name, entry["choices"])
    bounds = {key: value for key, value in entry.items() if key != "type"}
    if entry["type"] == "int":
        return trial.suggest_int(name, **bounds)
    return trial.suggest_float(name, **bounds)


def _entries(
    content: dict[str, Any], path: Path, at: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the settings below `at`; dotted and quoted names are read alike."""
    for key, value in content.items():
        name = f"{at}{key}"
        if not isinstance(value, dict):
            raise InputError(
                f"{path}: {name}: {value!r} is not a range; "
                "write a table with a type and its bounds"
            )
        if any(not isinstance(value.get(option, {}), dict) for option in ENTRY):
            yield name, value
        else:
            yield from _entries(value, path, f"{name}.")


def _wrong(entry: dict[str, Any]) -> str | None:
    """The fault in the range of a setting; None if there is none."""
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in OPTIONS:
        return f"type is {kind!r}: choose from {', '.join(OPTIONS)}"
    unknown = entry.keys() - OPTIONS[kind] - {"type"}
    if unknown:
        known = ", ".join(sorted(OPTIONS[kind]))
        return f"{min(unknown)!r} is not an option of the type {kind}: choose from {known}"
    if kind == "categorical":
        choices = entry.get("choices")
        plain = bool | int | float | str
        if not isinstance(choices, list) or not choices:
            return "choices: write a list of at least one value"
        if not all(isinstance(choice, plain) for choice in choices):
            return "choices: write numbers, strings, true or false only"
        if not all(isinstance(choice, str) or _fits(choice) for choice in choices):
            return "choices: write numbers from -2**53 to 2**53"
        return None
    return _wrong_bounds(kind, entry)


def _wrong_bounds(kind: str, entry: dict[str, Any]) -> str | None:
    number = int if kind == "int" else int | float
    for key in ("low", "high", *({"step"} & entry.keys())):
        if not isinstance(entry.get(key), number) or isinstance(entry[key], bool):
            return f"{key} is {entry.get(key)!r}: write a number ({kind})"
        if not _fits(entry[key]):
            return f"{key} is out of range: write a number from -2**53 to 2**53"
    log = entry.get("log", False)
    if not isinstance(log, bool):
        return f"log is {log!r}: write true or false"
    if not entry["low"] <= entry["high"]:
        return f"low is {entry['low']} and high {entry['high']}: write them in this order"
    if log and (entry["low"] <= 0 or "step" in entry):
        return "log needs a low above 0 and no step"
    if entry.get("step", 1) <= 0:
        return f"step is {entry['step']}: write a number above 0"
    return None


def _fits(number: float) -> bool:
    return -LARGEST <= number <= LARGEST
