"""The result of one training of a plan, as a JSON file: `record.json` in the folder of the run."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError

FORMAT: Literal["spacy-psa run 1"] = "spacy-psa run 1"
FILE = "record.json"

Counts = list[tuple[int, int, int]]
"""For each sentence: the number of right, predicted and gold units."""


class Evaluation(BaseModel):
    """Scores on development data during training, as fractions of 1."""

    epoch: int
    step: int
    score: float
    scores: dict[str, Any]
    losses: dict[str, float]


class Scored(BaseModel):
    """A pipeline on a corpus: scores, as fractions of 1, and the counts by sentence of some."""

    path: str
    scores: dict[str, Any]
    sentences: dict[str, Counts]


class Record(BaseModel):
    """One training of a run, and where its figures come from.

    Attributes:
        plan_file: the file of the plan; None in a record of version 0.2.0 or earlier.
        state: "running" from the start on, also after a kill; then "finished" or "failed".
        reason: why it failed, or why a finished training is not scored on test data; else None.
        hash: tells trainings apart: by config, seed, and the content of the files that they read.
        test_hash: the same for the test corpus; None without a test.
        date: when the training started, or went on, ISO 8601.
        commit: the git commit of the current folder, or None.
        modified: whether tracked files differed from it, or None.
        data: {path: MD5} of the files that were read.
        machine, versions: see `spacy_psa.scoring.provenance`.
        base: the config that the plan names.
        layers: the configs that were laid over it.
        settings: the single settings of the plan.
        config: the whole config.
        test: the test corpus; None if the run was not final.
        metric: the score that counts most in [training.score_weights].
        seconds: how long the training took; None if it was interrupted.
        best: the evaluation whose weights were saved as model-best.
        dev, tested: that model on the development data, and on the test data.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["spacy-psa run 1"] = FORMAT
    plan: str
    plan_file: str | None = None
    run: str
    seed: int
    state: Literal["running", "finished", "failed"] = "running"
    reason: str | None = None
    hash: str
    test_hash: str | None
    date: str
    command: str
    commit: str | None
    modified: bool | None
    data: dict[str, str]
    machine: dict[str, Any]
    versions: dict[str, str | None]
    base: str
    layers: list[str]
    settings: dict[str, Any]
    config: dict[str, Any]
    test: str | None
    metric: str
    seconds: float | None = None
    evaluations: list[Evaluation] = []
    best: Evaluation | None = None
    dev: Scored | None = None
    tested: Scored | None = None

    @model_validator(mode="after")
    def _has_its_scores(self) -> "Record":
        if self.state == "finished":
            if self.dev is None:
                raise ValueError("it is finished, but has no scores")
            for part in (self.dev, self.tested):
                score = part and part.scores.get(self.metric)
                if score is not None and not isinstance(score, int | float):
                    raise ValueError(f"the score {self.metric} is not a number")
        return self

    @property
    def name(self) -> str:
        """The name of the training."""
        return f"{self.run}, seed {self.seed}"

    @property
    def lacking(self) -> str | None:
        """The reason why a result is missing; None if none is."""
        if self.state == "finished":
            return self.reason
        return f"failed: {self.reason}" if self.reason else "is not finished"

    @property
    def summary(self) -> str:
        """The name with the scores, or with the reason why they are missing, in one line."""
        if self.lacking or self.dev is None:
            return f"{self.name}: {self.lacking}"
        line = f"{self.name}: dev {self.metric} {100 * self.dev.scores.get(self.metric, 0.0):.2f}"
        if self.tested is not None:
            line += f", test {100 * self.tested.scores.get(self.metric, 0.0):.2f}"
        return line if self.best is None else f"{line} (epoch {self.best.epoch})"


def read_record(path: Path) -> Record:
    """Read a record."""
    try:
        content = json.loads(path.read_text(encoding="utf8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is damaged ({error}); remove it") from error
    written = content.get("format") if isinstance(content, dict) else None
    if written != FORMAT:
        raise InputError(
            f"{path}: has the format {written!r}, but this version reads {FORMAT!r}; use the "
            "version that wrote it, or remove the file"
        )
    try:
        return Record.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        fault = f"{place}: {first['msg']}" if place else first["msg"].removeprefix("Value error, ")
        raise InputError(f"{path}: is damaged ({fault}); remove it") from error


def write_record(record: Record, path: Path) -> None:
    """Write a record, with one line for each key; it appears whole or not at all."""
    content = record.model_dump(mode="json")
    lines = (
        f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in content.items()
    )
    with atomic_path(path) as temporary:
        temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf8")


def find_records(folders: Sequence[Path]) -> list[Record]:
    """Read all records below some folders, sorted by plan, run and seed.

    Numbers in the name of a run are sorted by their value: window=2 comes before window=10. Two
    records of one run and seed are an error, and trainings of a run that differ in more than the
    seed, as after a change of the plan.
    """
    paths_by_key: dict[tuple[str, str, int], Path] = {}
    records, runs = [], dict[tuple[str, str], tuple[Record, Path]]()
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder; name one of `experiment run`")
        paths = sorted(folder.rglob(FILE))
        if not paths:
            raise InputError(f"{folder}: has no {FILE} in it; name a folder of `experiment run`")
        for path in paths:
            record = read_record(path)
            key = record.plan, record.run, record.seed
            first = paths_by_key.setdefault(key, path)
            if first.resolve() != path.resolve():
                raise InputError(
                    f"{first} and {path}: are two results of run {record.run!r}, seed "
                    f"{record.seed}, of the plan {record.plan!r}; name only one of them"
                )
            _check_same_run(record, path, runs.setdefault(key[:2], (record, path)))
            records.append(record)
    unique = {(record.plan, record.run, record.seed): record for record in records}
    return [unique[key] for key in sorted(unique, key=lambda key: (key[0], _parts(key[1]), key[2]))]


def _parts(name: str) -> list[str | float]:
    """Split a name into texts and numbers in turn."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", name)
    return [float(part) if i % 2 else part for i, part in enumerate(parts)]


def by_run(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Group records by the name of their run; with that of the plan, if several plans have it."""
    records = list(records)
    plans = {(record.run, record.plan) for record in records}
    shared = {run for run, _ in plans if sum(name == run for name, _ in plans) > 1}
    runs_by_name: dict[str, list[Record]] = {}
    for record in records:
        name = f"{record.plan}/{record.run}" if record.run in shared else record.run
        runs_by_name.setdefault(name, []).append(record)
    return runs_by_name


def _check_same_run(record: Record, path: Path, first: tuple[Record, Path]) -> None:
    def plain(value: Any) -> Any:
        """A config without the settings that differ from seed to seed."""
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if k not in ("seed", "output_file")}
        return value

    other, place = first
    changed = any(other.data.get(file, md5) != md5 for file, md5 in record.data.items())
    if changed or plain(record.config) != plain(other.config):
        raise InputError(
            f"{place} and {path}: are of the run {record.run!r}, but their configs or data differ; "
            "remove the folder of the older one, or run the plan again"
        )
