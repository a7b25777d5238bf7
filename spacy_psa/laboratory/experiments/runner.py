"""Runs a plan: every training of it that has no result yet, each in a folder of its own."""

import hashlib
import json
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from configparser import Error
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thinc.api import Config, ConfigValidationError

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.job import CONFIG, LOG
from spacy_psa.laboratory.experiments.plan import Plan, Run
from spacy_psa.laboratory.experiments.processes import OUTPUT, Ended, Engine
from spacy_psa.laboratory.experiments.record import FILE, Record, read_record, write_record
from spacy_psa.scoring.provenance import checksums, provenance
from spacy_psa.training.checkpoint import Checkpoints
from spacy_psa.training.config import check_corpora, check_values, reason
from spacy_psa.training.identity import BLOCKS, named_files
from spacy_psa.training.layers import layered, set_log
from spacy_psa.training.model_folders import ModelFolders, locked

NOT_TESTED = "it is not scored on test data yet"

Sums = dict[str, str]
"""{path of a file: MD5 of its content}"""


class Contents:
    """The checksums of files, each of which is read once."""

    def __init__(self) -> None:
        self._read: dict[Path, Sums] = {}

    def sums(self, paths: Iterable[Path]) -> Sums:
        """The checksums of files, and of all files in folders."""
        sums: Sums = {}
        for path in paths:
            if path not in self._read:
                self._read[path] = checksums([path])
            sums |= self._read[path]
        return sums

    def digest(self, path: Path) -> str:
        """A checksum of the content of a file or folder, whatever its path is."""
        sums = self.sums([path]).items()
        return _digest(sorted((str(Path(name).relative_to(path)), md5) for name, md5 in sums))


def fingerprint(config: Mapping[str, Any], contents: Contents) -> str:
    """A checksum of a training: of its config, with its seed, and of the content of its files.

    It stays the same when files are moved; the variables of the config must be filled in.
    """
    files = named_files(dict(config))
    digests = {str(Path(name)): contents.digest(path) for name, path in files.items()}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key != "output_file"}
        if isinstance(value, str) and value:
            return digests.get(str(Path(value)), value)
        return value

    return _digest({block: plain(config[block]) for block in BLOCKS})


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Job:
    """One training of a plan."""

    folder: Path
    config: Config
    """Its config; variables stay variables."""
    record: Record
    """Its record as it is before the training."""
    earlier: Record | None
    """The record that is already in the folder; None if there is none."""

    @property
    def same(self) -> bool:
        """Whether the folder has files of this training, with its config, seed and data."""
        return self.earlier is not None and self.earlier.hash == self.record.hash

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""
        trained = self.trained
        if trained is None or self.record.test is None:
            return trained is not None
        return trained.tested is not None and trained.test_hash == self.record.test_hash

    @property
    def trained(self) -> Record | None:
        """The record of this training, scored on development data; None before it is over."""
        if self.earlier is None or not self.same or self.earlier.state != "finished":
            return None
        return self.earlier

    @property
    def progress(self) -> float:
        """The share of the training that is over, at least; between 0 and 1."""
        training = self.record.config["training"]
        last = self.last
        shares = [
            last[kind] / training[f"max_{kind}s"]
            for kind in ("epoch", "step")
            if last and training[f"max_{kind}s"] > 0
        ]
        return min(1.0, max(shares, default=0.0))

    @property
    def last(self) -> dict[str, Any] | None:
        """The last evaluation of the training so far; None before there is one."""
        try:
            lines = (self.folder / LOG).read_text(encoding="utf8").splitlines()
            evaluation: dict[str, Any] = json.loads(lines[-1])
        except (OSError, ValueError, IndexError):
            return None
        return evaluation


def make_jobs(plan: Plan, out: Path) -> list[Job]:
    """Make the config and the record of each training of a plan; nothing is written."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; name a folder")
    contents, source = Contents(), provenance()
    jobs = []
    for run in plan.runs:
        with _naming(plan, run):
            config = layered(run.config, run.layers, run.settings)
            filled = config.interpolate()
            check_corpora(run.config, filled, null=False)
            check_values(filled)
            if run.test is not None and not run.test.exists():
                raise InputError(
                    f"{run.test}: there is no such file or folder, and paths.test names it; check "
                    "the path"
                )
        for seed in run.seeds:
            folder = out / run.name / f"seed-{seed}"
            jobs.append(_make_job(plan, run, config.copy(), seed, folder, contents, source))
    return jobs


def run_plan(
    plan: Plan,
    out: Path,
    engine: Engine,
    tell: Callable[[str], None],
    watch: Callable[[Sequence[Job]], AbstractContextManager[Callable[[list[Record]], None]]],
) -> int:
    """Train what is not done, and return the number of trainings that failed.

    `out` is the folder for all results, and the engine runs the processes. `watch` shows the
    progress of jobs; it yields a function of the records that have ended.
    """
    jobs = make_jobs(plan, out)
    for job in jobs:
        if job.done:
            tell(f"{job.record.name}: has a record, {job.folder}")
        elif job.earlier is not None and not job.same:
            tell(f"{job.record.name}: trains again, since its config or data have changed")
    wanted, failed = [job for job in jobs if not job.done], 0
    if wanted:
        with watch(wanted) as show, closing(run_jobs(jobs, engine, out)) as rounds:
            for records in rounds:
                failed += sum(record.lacking is not None for record in records)
                show(records)
    rest = f", {failed} failed; the same command tries them again" if failed else ""
    tell(f"{out}: {len(jobs) - failed} of {len(jobs)} trainings finished{rest}")
    return failed


def run_jobs(jobs: Sequence[Job], engine: Engine, out: Path) -> Generator[list[Record], None, None]:
    """Train what is not done; yield, again and again, the records of runs that have ended.

    A run that fails or is killed is recorded as failed. Close the iterator to end all runs; the
    next time they continue from their checkpoints.
    """
    wanted = [job for job in jobs if not job.done]
    with locked(out):
        for job in wanted:
            _prepare(job)
        with closing(engine([job.folder for job in wanted])) as rounds:
            for ended in rounds:
                yield [_settled(each) for each in ended]


def _make_job(
    plan: Plan,
    run: Run,
    config: Config,
    seed: int,
    folder: Path,
    contents: Contents,
    source: dict[str, Any],
) -> Job:
    with _naming(plan, run):
        own = [name for name in ("system", "training") if "seed" in config.get(name, {})]
        for name in own or ["training"]:
            config[name]["seed"] = seed
        set_log(config, folder / LOG)
        filled = config.interpolate()
    data = contents.sums([*named_files(filled).values(), *([run.test] if run.test else [])])
    weights = filled["training"]["score_weights"]
    record = Record(
        **{**source, "data": data},
        plan=plan.name,
        plan_file=str(plan.file),
        run=run.name,
        seed=seed,
        hash=fingerprint(filled, contents),
        test_hash=None if run.test is None else contents.digest(run.test),
        base=str(run.config),
        layers=list(map(str, run.layers)),
        settings=dict(run.settings),
        config=json.loads(json.dumps(filled, default=str)),
        test=None if run.test is None else str(run.test),
        metric=max(weights, key=lambda name: weights[name] or 0.0, default=""),
    )
    path = folder / FILE
    earlier = read_record(path) if path.exists() else None
    if earlier is not None and _other_plan(earlier, plan):
        raise InputError(
            f"{path}: is a result of the plan {earlier.plan_file or earlier.plan!r}, and the plan "
            f"{plan.file} would overwrite it; choose another --out, or rename the run"
        )
    return Job(folder, config, record, earlier)


def _other_plan(earlier: Record, plan: Plan) -> bool:
    """Whether a record is of another plan; a plan that was moved stays the same."""
    if earlier.plan != plan.name or earlier.plan_file is None:
        return earlier.plan != plan.name
    file = Path(earlier.plan_file)
    return file.exists() and not file.samefile(plan.file)


@contextmanager
def _naming(plan: Plan, run: Run) -> Iterator[None]:
    """Name the run in an error."""
    try:
        yield
    except (InputError, ConfigValidationError, Error, ValueError, KeyError) as error:
        raise InputError(f"plan {plan.name!r}, run {run.name!r}: {reason(error)}") from error


def _prepare(job: Job) -> None:
    """Write the config and the record of a run that begins or continues."""
    if not job.same:
        Checkpoints(job.folder).remove()  # they are of another training
        (job.folder / LOG).unlink(missing_ok=True)
        ModelFolders(job.folder).remove()
    with atomic_path(job.folder / CONFIG) as temporary:
        job.config.to_disk(temporary, interpolate=False)
    kept: dict[str, Any] = {}
    if job.earlier is not None and job.same:
        kept["seconds"] = job.earlier.seconds
    if job.trained is not None:
        results = ("state", "evaluations", "best", "dev")
        kept |= {"reason": NOT_TESTED, **{key: getattr(job.trained, key) for key in results}}
    write_record(job.record.model_copy(update=kept), job.folder / FILE)


def _settled(ended: Ended) -> Record:
    """The record of a run whose process has ended."""
    path = ended.folder / FILE
    record = read_record(path)
    if record.state == "running":
        record = record.model_copy(update={"state": "failed", "reason": _why(ended)})
        write_record(record, path)
    return record


def _why(ended: Ended) -> str:
    if ended.code is None:
        return "its worker was killed again and again"
    if ended.code < 0:
        name = signal.Signals(-ended.code).name
        return f"its process was killed ({name}), perhaps because memory ran out"
    return f"its process ended with code {ended.code}; see {ended.folder / OUTPUT}"
