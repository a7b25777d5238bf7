"""The format of all result files: an envelope that says where the figures come from.

A record is a JSON object with these keys and no others:

- `format`: "spacy-psa record 1"
- `experiment`: the name of the folder below `benchmarks`
- `name`: the name of the file in that folder's `results`, without ".json"
- `kind`: what `results` holds, a key of `benchmarks.kinds.KINDS`
- `date`: when it was measured, ISO 8601, or null
- `command`: the command that measured it, as it was at `commit`, or null
- `commit`: the git commit of the code, 7 to 40 hexadecimal digits, or null
- `modified`: whether tracked files differed from `commit`, or null
- `seed`: the seed of the training or of the draw, or null
- `data`: {path: MD5} of the files that were read; empty if none was, or none was noted
- `machine`, `versions`: what `spacy_psa.scoring.provenance` gives; more keys are allowed
- `config`: the training config as a nested object, or null
- `note`: what else is to be known; it ends with a sentence "Not recorded: ..." or "Does not
  apply: ..." that names each key of the envelope whose value is null
- `results`: the figures; fractions of 1 for scores, seconds, words

The kinds of results:

- `training`: a pipeline, its training and its scores; `TrainingResults` of `benchmarks.kinds`
- `speed`: sections of `spacy_psa.laboratory.performance.sections`; `SpeedResults`
- `calibration`: what `spacy-psa calibrate --json` measures; `CalibrationResults`
- `figures`: any other object; the docstring of the script that writes it names its keys
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from benchmarks.kinds import KINDS, Kind, Strict
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError
from spacy_psa.scoring.provenance import provenance

FORMAT = "spacy-psa record 1"
FOLDER = Path(__file__).parent
NULLABLE = ("date", "command", "commit", "modified", "seed", "config")
MISSING = "Not recorded"
IDLE = "Does not apply"

MD5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Machine(BaseModel):
    """The computer; `cores` are those that the process might use."""

    model_config = ConfigDict(extra="allow", strict=True)
    cpu: str
    cores: int
    memory_gb: float | None
    gpu: str | None
    system: str


class Record(Strict):
    """A result file; this module's docstring describes its keys."""

    format: Literal["spacy-psa record 1"]
    experiment: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    kind: Kind
    date: str | None
    command: Annotated[str, Field(min_length=1)] | None
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")] | None
    modified: bool | None
    seed: int | None
    data: dict[str, MD5]
    machine: Machine
    versions: dict[str, str | None]
    config: dict[str, Any] | None
    note: str
    results: Annotated[dict[str, Any], Field(min_length=1)]

    @model_validator(mode="after")
    def check(self) -> "Record":
        if self.date is not None and datetime.fromisoformat(self.date).tzinfo is None:
            raise ValueError(f"date is {self.date}: it needs a time zone")
        if not {"python", "spacy-psa"} <= set(self.versions):
            raise ValueError("versions must name those of python and of spacy-psa")
        null = [key for key in NULLABLE if getattr(self, key) is None]
        said = explained(self.note)
        if sorted(said) != sorted(null):
            raise ValueError(f"null are {null}, but the note explains {said}")
        if self.kind == "training" and self.config is None:
            raise ValueError("a training needs its config")
        results = KINDS[self.kind]
        if results is not None:
            results.model_validate(self.results)
        return self


def explained(note: str) -> list[str]:
    """The keys that a note calls not recorded, or says not to apply."""
    found = re.findall(rf"(?:{MISSING}|{IDLE}): ([a-z, ]+)\.", note)
    return [key for keys in found for key in keys.split(", ")]


def explain(note: str, missing: Iterable[str] = (), idle: Iterable[str] = ()) -> str:
    """A note with sentences that name the keys without a value.

    Args:
        note: what else is to be known.
        missing: keys whose value was not recorded.
        idle: keys that do not apply.

    Examples:
        >>> explain("One thread.", missing=["date"], idle=["seed", "config"])
        'One thread. Not recorded: date. Does not apply: seed, config.'
    """
    parts = [note] if note else []
    for title, keys in ((MISSING, list(missing)), (IDLE, list(idle))):
        if keys:
            parts.append(f"{title}: {', '.join(keys)}.")
    return " ".join(parts)


def make_record(
    experiment: str,
    name: str,
    kind: Kind,
    results: Mapping[str, Any],
    *,
    source: Mapping[str, Any] | None = None,
    seed: int | None = None,
    config: Mapping[str, Any] | None = None,
    note: str = "",
    data: Iterable[Path] = (),
) -> dict[str, Any]:
    """A record of figures.

    Args:
        experiment: the folder below `benchmarks`.
        name: the name of the file, without ".json".
        kind: what the results are, a key of `KINDS`.
        results: the figures.
        source: `date`, `command`, `commit`, `modified`, `data`, `machine` and `versions`, None
            for those of this process; what it lacks was not recorded.
        seed: the seed; None if there is none.
        config: the training config; None if there is none.
        note: what else is to be known.
        data: files to take checksums of, if `source` is None.

    Returns:
        The record, valid.

    Raises:
        InputError: if a key has a value that the format does not allow.
    """
    source = provenance(data) if source is None else source
    missing = [key for key in NULLABLE[:4] if source.get(key) is None]
    idle = [key for key, value in (("seed", seed), ("config", config)) if value is None]
    if kind in ("training", "calibration"):  # which have both, recorded or not
        missing, idle = missing + idle, []
    record = {
        "format": FORMAT,
        "experiment": experiment,
        "name": name,
        "kind": kind,
        **{key: source.get(key) for key in NULLABLE[:4]},
        "seed": seed,
        **{key: source[key] for key in ("data", "machine", "versions")},
        "config": None if config is None else dict(config),
        "note": explain(note, missing, idle),
        "results": dict(results),
    }
    check(record, name)
    return record


def check(record: Any, place: str) -> None:
    """Compare a record with the format.

    Args:
        record: the JSON object.
        place: a name for error messages.

    Raises:
        InputError: if the record is not in the format; the message names each key.
    """
    try:
        Record.model_validate(record)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or 'record'}: {each['msg']}"
            for each in error.errors()
        )
        raise InputError(f"{place}: not a record of the format {FORMAT!r} ({faults})") from error


def read_record(path: Path) -> dict[str, Any]:
    """Read a result file.

    Raises:
        InputError: if the file is missing, not in the format, or not where its `experiment` and
            `name` say.
    """
    try:
        record = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: no JSON file to read ({error})") from error
    check(record, str(path))
    if path.parent.parent.parent == FOLDER and path != place_of(record):
        raise InputError(f"{path}: it says that its place is {place_of(record)}")
    return dict(record)


def place_of(record: Mapping[str, Any]) -> Path:
    """Where a record belongs."""
    return FOLDER / record["experiment"] / "results" / f"{record['name']}.json"


def save_record(record: Mapping[str, Any], path: Path) -> None:
    """Write a record to a file, which appears whole, and print its command.

    Raises:
        InputError: if the record is not in the format, or the file cannot be written.
    """
    check(record, str(path))
    with atomic_path(path) as temporary:
        text = json.dumps(record, indent=2, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf8")
    print(f"Written: {path}, by {record['command'] or 'a command that was not recorded'}")


def write_record(
    path: Path,
    experiment: str,
    results: Mapping[str, Any],
    *,
    data: Iterable[Path] = (),
    seed: int | None = None,
    note: str = "",
) -> None:
    """Write figures of this process as a record of the kind "figures".

    Args:
        path: the file; its name without ".json" is the name of the record.
        experiment: the folder below `benchmarks`.
        results: the figures.
        data: files that were read, to take checksums of.
        seed: the seed of a draw; None if there is none.
        note: what else is to be known.

    Raises:
        InputError: if a file is missing or cannot be written.
    """
    save_record(
        make_record(experiment, path.stem, "figures", results, seed=seed, note=note, data=data),
        path,
    )
