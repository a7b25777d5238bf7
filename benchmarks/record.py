"""The format of all result files: an envelope around figures that describes their origin.

A record is a JSON object with exactly these keys:

- `format`: "spacy-psa record 1"
- `experiment`: the name of the folder below `benchmarks`
- `name`: the name of the file in that folder's `results`, without ".json"
- `kind`: the kind of `results`, one of `Kind`
- `date`: when it was measured, ISO 8601, or null
- `command`: the command that measured it, as it was at `commit`, or null
- `commit`: the git commit of the code, 7 to 40 hexadecimal digits, or null
- `modified`: whether tracked files differed from `commit`, or null
- `seed`: the seed of the training or of the draw, or null
- `data`: {path: MD5} of the files that were read; empty if there are none or they were not noted
- `machine`, `versions`: as in `spacy_psa.scoring.provenance`; more keys are allowed
- `config`: the training config as a nested object, or null
- `note`: further remarks. It ends with a sentence "Not recorded: ..." or "Does not apply: ..." that
  names each key of the envelope whose value is null
- `results`: the figures. Scores are fractions of 1; times are in seconds, lengths in words

The kinds of results:

- `training`: a pipeline, its training and its scores; `TrainingResults`
- `speed`: sections of `spacy_psa.laboratory.performance.sections`
- `calibration`: the figures of `spacy-psa calibrate --json`
- `figures`: any other object; the docstring of the script that writes it names its keys
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError
from spacy_psa.scoring.provenance import provenance

FORMAT = "spacy-psa record 1"
FOLDER = Path(__file__).parent
NULLABLE = ("date", "command", "commit", "modified", "seed", "config")
MISSING = "Not recorded"
IDLE = "Does not apply"

MD5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Kind = Literal["training", "speed", "calibration", "figures"]


class Strict(BaseModel):
    """An object without unknown keys, whose values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Evaluation(Strict):
    """Development scores during training, and the `losses` since the last evaluation."""

    epoch: int
    step: int
    score: Share
    scores: dict[str, Any]
    losses: dict[str, float]


class Pipeline(Strict):
    path: str
    lang: str
    name: str
    version: str
    pipeline: list[str]


class Test(Strict):
    path: str
    documents: int
    words: int


class Pass(Strict):
    words_per_second: float
    words: int
    seconds: float
    batch_size: int
    threads: int
    device: Literal["cpu", "gpu"]


class Genre(Strict):
    """The scores of the test documents of a genre; those of each label are left out."""

    words: int
    scores: dict[str, float]


class TrainingResults(Strict):
    """A pipeline, its training and its scores, as in `spacy_psa.scoring.result`.

    `model`, `test`, `scores`, `support` and `speed` are null if there was no test. Scores without
    the log of a training have an empty `dev` and null for `best`. `setup` describes the data of an
    experiment, or is null. `genres` has those of the test documents, if they name them.
    """

    model: Pipeline | None
    test: Test | None
    scores: dict[str, Any] | None
    support: dict[str, dict[str, int]] | None
    speed: Pass | None
    dev: list[Evaluation]
    best: Evaluation | None
    setup: dict[str, Any] | None
    genres: dict[str, Genre] | None = None

    @model_validator(mode="after")
    def check(self) -> "TrainingResults":
        tested = [self.model, self.test, self.scores, self.support, self.speed]
        if any(each is None for each in tested) != all(each is None for each in tested):
            raise ValueError("model, test, scores, support and speed must all be there, or none")
        if self.best is None and (self.dev or self.scores is None):
            raise ValueError("there is no best evaluation, and no test scores without a log either")
        if self.best is not None and self.best not in self.dev:
            raise ValueError("the best evaluation is not one of the evaluations in dev")
        return self


class Machine(BaseModel):
    """The computer; `cores` are those that the process could use."""

    model_config = ConfigDict(extra="allow", strict=True)
    cpu: str
    cores: int
    memory_gb: float | None
    gpu: str | None
    system: str


class Record(Strict):
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
        if self.kind == "training":
            if self.config is None:
                raise ValueError("a training needs its config")
            TrainingResults.model_validate(self.results)
        return self


def explained(note: str) -> list[str]:
    """The keys that a note calls not recorded or not applicable."""
    lists = re.findall(rf"(?:{MISSING}|{IDLE}): ([a-z, ]+)\.", note)
    return [key for keys in lists for key in keys.split(", ")]


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
    """A record of figures; the arguments are its keys.

    Args:
        source: `date`, `command`, `commit`, `modified`, `data`, `machine` and `versions`; by
            default, those of this process. Other keys that are missing were not recorded.
        data: the files to compute checksums of, without a `source`.

    Raises:
        InputError: if a key has a value that the format does not allow.
    """
    source = provenance(data) if source is None else source
    missing = [key for key in NULLABLE[:4] if source.get(key) is None]
    idle = [key for key, value in (("seed", seed), ("config", config)) if value is None]
    if kind in ("training", "calibration"):  # these have both, recorded or not
        missing, idle = missing + idle, []
    named = {MISSING: missing, IDLE: idle}
    explanations = [f"{title}: {', '.join(keys)}." for title, keys in named.items() if keys]
    record = {
        "format": FORMAT,
        "experiment": experiment,
        "name": name,
        "kind": kind,
        **{key: source.get(key) for key in NULLABLE[:4]},
        "seed": seed,
        **{key: source[key] for key in ("data", "machine", "versions")},
        "config": None if config is None else dict(config),
        "note": " ".join([note] * bool(note) + explanations),
        "results": dict(results),
    }
    check(record, name)
    return record


def check(record: Any, place: str) -> None:
    """Compare a record with the format.

    Raises:
        InputError: if it does not fit; the message has the place and each key that is wrong.
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
        InputError: if the file is missing, is not in the format, or is at the wrong place.
    """
    try:
        record = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error})") from error
    check(record, str(path))
    if path.parent.parent.parent == FOLDER and path != place_of(record):
        raise InputError(f"{path}: the record belongs at {place_of(record)}")
    return dict(record)


def place_of(record: Mapping[str, Any]) -> Path:
    """The path of the file of a record."""
    return FOLDER / record["experiment"] / "results" / f"{record['name']}.json"


def save_record(record: Mapping[str, Any], path: Path | None = None) -> None:
    """Write a record to its place, or to another file, and print its command.

    Raises:
        InputError: if the record is not in the format or the file cannot be written.
    """
    path = path or place_of(record)
    check(record, str(path))
    with atomic_path(path) as temporary:
        text = json.dumps(record, indent=2, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf8")
    print(f"Written: {path}, by {record['command'] or 'a command that was not recorded'}")


def write_record(
    out: Path | str,
    experiment: str,
    results: Mapping[str, Any],
    *,
    data: Iterable[Path] = (),
    seed: int | None = None,
    config: Mapping[str, Any] | None = None,
    note: str = "",
) -> None:
    """Write figures of this process as a record of the kind "figures"; see `make_record`.

    `out` is a file, or the name of a record, which is written to its place.

    Raises:
        InputError: if a file is missing or cannot be written.
    """
    name, path = (out, None) if isinstance(out, str) else (out.stem, out)
    origin: Any = {"data": data, "seed": seed, "config": config, "note": note}
    save_record(make_record(experiment, name, "figures", results, **origin), path)
