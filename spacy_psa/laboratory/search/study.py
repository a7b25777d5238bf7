"""A search for the settings of a config, which can be continued, by several processes at once."""

import hashlib
import io
import json
import os
import socket
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, Literal

import optuna
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import dot_to_dict
from sqlalchemy import URL
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError
from thinc.api import Config

from spacy_psa.corpora.docbin import codecs_known
from spacy_psa.errors import InputError
from spacy_psa.laboratory.search.space import Space, suggest
from spacy_psa.laboratory.search.trial_logger import Report, reporting
from spacy_psa.training.config import reason
from spacy_psa.training.identity import BLOCKS, identity

Sampler = Literal["tpe", "random"]
NAME = "spacy-psa"
"""The name of the search in its file."""
JOURNAL = ".journal"
"""The end of the name of a file that several processes may use."""
AGAIN = "again"
"""Marks a trial that replaces one that was interrupted."""
SURPLUS = "surplus"
"""Marks a trial that was one too many, since another process began the last one."""
PRESENT = "present"
"""The attribute of a trial with the process that trains it, and its last sign of life."""
EVERY = 30.0
"""Seconds between two signs of life."""
SILENCE = 300.0
"""Seconds without a sign of life after which a process on another machine is considered dead."""
RACES = (IntegrityError, OperationalError, ProgrammingError)
"""Errors of a database whose tables another process may be making."""
TRIES, PAUSE = 5, 1.0
"""How often it is tried again, and the seconds before that."""
LOCKED = 60.0
"""Seconds to wait for an SQLite file to which another process writes."""


class Search:
    """Searches for the settings with the best dev score; each trial trains one combination.

    If a sampler draws a combination that has been trained before, its trial gets the same score.

    Several processes may search together, if they have the same storage. A trial whose process has
    ended is trained again by another.

    Args:
        config: the config as in its file, with variables.
        space: the settings and their ranges.
        storage: where the search is kept; see `open_storage`.
        sampler: "tpe", Optuna's sampler, or "random" (Yan2019 section 4.1).
        seed: the seed of the draws; the trainings use the seed of the config.
        startup: the number of complete trials before pruning begins. After that, a training is
            ended if its best score is below the median of the scores of the other trials at the
            same evaluation.
        use_gpu: the GPU to train on; -1 means the CPU.
    """

    def __init__(
        self,
        config: Config,
        space: Space,
        storage: str | Path,
        sampler: Sampler = "tpe",
        seed: int = 0,
        startup: int = 5,
        use_gpu: int = -1,
    ):
        self.config = config
        self.space = space
        self.sampler = sampler
        self.seed = seed
        self.use_gpu = use_gpu
        pruner = optuna.pruners.MedianPruner(n_startup_trials=startup)
        filled = Config(config).interpolate()
        data = identity({block: filled.get(block, {}) for block in BLOCKS})["data"]
        self.study = _open(str(storage), pruner, _fingerprint(config, space), data)
        self._take_up()

    @property
    def done(self) -> int:
        """The number of trials that have ended, successful or not, without interrupted ones."""
        return len(self.ended)

    @property
    def ended(self) -> list[FrozenTrial]:
        """The trials that were trained to their end, pruned, or cannot be trained, in order."""
        return [
            trial
            for trial in self.study.get_trials(deepcopy=False)
            if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)
            or "error" in trial.user_attrs
        ]

    @property
    def begun(self) -> int:
        """The number of trials that have ended or are under way, in this process or another."""
        trials = self.study.get_trials(deepcopy=False)
        known = sum(trial.state != TrialState.WAITING for trial in trials)
        return known - _uncounted(trials)

    @property
    def best(self) -> FrozenTrial | None:
        """The complete trial with the best score, the first of equals; None if there is none."""
        complete = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return max(complete, key=lambda trial: (trial.value, -trial.number), default=None)

    def settled(self, values: dict[str, Any]) -> Config:
        """The config with these values; its variables stay variables."""
        return Config(self.config).merge(dot_to_dict(values))

    def step(self, watch: Report | None = None, limit: int | None = None) -> FrozenTrial | None:
        """Train one more combination, and return its trial.

        It is None if the last one has been begun, by this process or another. An InputError means
        that the combination cannot be trained and no other could be trained before. Later failures
        only mark the trial as failed, with the reason in `user_attrs["error"]`.

        Args:
            watch: called after each evaluation.
            limit: the number of trials of all processes together; None for no limit.
        """
        self._take_up()
        if limit is not None and self.begun >= limit:
            return None
        self._enqueue({})
        trial = self.study.ask()
        trials = self.study.get_trials(deepcopy=False)
        place = trial.number - _uncounted(trials[: trial.number + 1])
        if limit is not None and place >= limit:
            trial.set_user_attr(SURPLUS, True)
            self.study.tell(trial, state=TrialState.FAIL)
            return None
        # The draws follow from the place of the trial, in whichever process it is trained.
        self.study.sampler = self._make_sampler(self.seed + place)
        best = float("-inf")

        def report(evaluation: int, score: float) -> None:
            nonlocal best
            best = max(best, score)
            trial.report(score, evaluation)
            if watch is not None:
                watch(evaluation, score)
            if trial.should_prune():
                raise optuna.TrialPruned

        try:
            with present(trial):
                values = suggest(trial, self.space)
                earlier = self._same(trial)
                if earlier is not None:
                    for evaluation, score in earlier.intermediate_values.items():
                        trial.report(score, evaluation)
                        best = max(best, score)
                    if earlier.state == TrialState.PRUNED:
                        raise optuna.TrialPruned
                else:
                    self._train(self.settled(values), report)
        except optuna.TrialPruned:
            return self.study.tell(trial, state=TrialState.PRUNED)
        except Exception as error:
            fault = " ".join(reason(error).split()) or type(error).__name__
            trial.set_user_attr("error", fault)
            failed = self.study.tell(trial, state=TrialState.FAIL)
            if self.best is None:
                drawn = ", ".join(f"{name} = {value}" for name, value in trial.params.items())
                raise InputError(f"cannot be trained with {drawn}: {fault}") from error
            return failed
        return self.study.tell(trial, best)

    def _same(self, trial: optuna.Trial) -> FrozenTrial | None:
        """Find a trial that has ended with the same values: its training would be the same."""
        states = (TrialState.COMPLETE, TrialState.PRUNED)
        ended = self.study.get_trials(deepcopy=False, states=states)
        return next((each for each in ended if each.params == trial.params), None)

    def _train(self, config: Config, report: Report) -> None:
        config = config.copy()
        logger = {"@loggers": "spacy-psa.trial_logger.v1", "logger": config["training"]["logger"]}
        config["training"]["logger"] = logger
        with reporting(report), codecs_known():
            nlp = init_nlp(config, use_gpu=self.use_gpu)
            train(nlp, None, use_gpu=self.use_gpu, stdout=io.StringIO(), stderr=io.StringIO())

    def _make_sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        # A new sampler each time, so that a continued search draws the same values as one that
        # was never interrupted.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            if self.sampler == "random":
                return optuna.samplers.RandomSampler(seed=seed)
            return optuna.samplers.TPESampler(seed=seed)

    def _take_up(self) -> None:
        """Queue the trials that were interrupted, so that they are trained first."""
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if is_interrupted(trial):
                try:
                    self.study.tell(trial.number, state=TrialState.FAIL)
                except (ValueError, UpdateFinishedTrialError):  # another process was faster
                    continue
                self._enqueue(trial.params, **{AGAIN: trial.number})

    def _enqueue(self, values: dict[str, Any], **attributes: int) -> None:
        """Queue a trial, with a sign of life, so that it does not count as interrupted."""
        signed = {PRESENT: sign_of_life(), **attributes}
        self.study.enqueue_trial(values, user_attrs=signed)


def _uncounted(trials: Iterable[FrozenTrial]) -> int:
    """Count the trials that replace others, or were one too many."""
    return sum(AGAIN in trial.user_attrs or SURPLUS in trial.user_attrs for trial in trials)


def _open(
    storage: str, pruner: optuna.pruners.BasePruner, fingerprint: str, data: dict[str, str]
) -> optuna.Study:
    """Open the search that is in the file, or begin one.

    A search in which every training failed is replaced: its config, space or data had to be
    corrected.
    """
    with _unopened_as_input_error(storage):
        study = _create(storage, pruner)
        differs = _difference(study, fingerprint, data)
        trials = study.get_trials(deepcopy=False)
        if differs and all(trial.state == TrialState.FAIL for trial in trials):
            optuna.delete_study(study_name=NAME, storage=open_storage(storage))
            study, differs = _create(storage, pruner), None
        if differs is None:
            study.set_user_attr("fingerprint", fingerprint)
            study.set_user_attr("data", data)
            return study
    raise InputError(
        f"{storage}: belongs to a search with {differs}; choose another --storage, or delete it"
    )


def _difference(study: optuna.Study, fingerprint: str, data: dict[str, str]) -> str | None:
    """How a search in a file differs from this one; None if it does not."""
    held = study.user_attrs
    if held.get("fingerprint", fingerprint) != fingerprint:
        return "another config, space or overrides"
    before = held.get("data", data)
    changed = [name for name in sorted(before | data) if before.get(name) != data.get(name)]
    return f"other data, since {', '.join(changed)} has changed" if changed else None


def _create(storage: str, pruner: optuna.pruners.BasePruner) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        storage=open_storage(storage),
        study_name=NAME,
        direction="maximize",
        pruner=pruner,
        load_if_exists=True,
    )


@contextmanager
def _unopened_as_input_error(storage: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # SQLite, SQLAlchemy, Alembic and Optuna raise different errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{storage}: cannot be opened as the storage of a search ({reason}); "
            "choose another --storage"
        ) from error


def _fingerprint(config: Config, space: Space) -> str:
    text = config.to_str(interpolate=False) + json.dumps(space, sort_keys=True)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def open_storage(place: str) -> BaseStorage:
    """Open the storage of a search; it is made if it does not exist.

    `place` is the path of an SQLite file; or of a journal, whose name ends in `.journal`, for
    processes that share a folder; or the URL of a database, such as `postgresql://user@host/name`.
    """
    if "://" in place:
        return _database(place)
    path = Path(place).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == JOURNAL:
        if path.is_file() and path.read_bytes()[:1] not in (b"", b"{"):
            raise InputError("it is not a journal")
        return JournalStorage(JournalFileBackend(str(path)))
    name = path.as_uri()  # escapes "?" and the like, as not all of SQLAlchemy 2 does
    url = URL.create("sqlite", database=name, query={"uri": "true"})
    return _database(url.render_as_string())


def _database(url: str) -> RDBStorage:
    # Otherwise SQLite gives up after five seconds in which another process writes.
    options = {"connect_args": {"timeout": LOCKED}} if url.startswith("sqlite") else {}
    for _ in range(TRIES):
        with suppress(*RACES):
            return RDBStorage(url, engine_kwargs=options)
        time.sleep(PAUSE)
    return RDBStorage(url, engine_kwargs=options)


@contextmanager
def present(trial: optuna.Trial) -> Iterator[None]:
    """Send signs of life of the process that trains a trial, inside of this block."""
    ended = Event()

    def tell() -> None:
        while not ended.wait(EVERY):
            trial.set_user_attr(PRESENT, sign_of_life())

    trial.set_user_attr(PRESENT, sign_of_life())
    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def is_interrupted(trial: FrozenTrial) -> bool:
    """Whether the process that trains an unfinished trial has ended.

    On this machine that is usually known at once, on another one, or if another process has its
    number, after some minutes of silence.
    """
    sign: dict[str, Any] | None = trial.user_attrs.get(PRESENT)
    if sign is None:  # of an earlier version
        return True
    if sign["host"] == socket.gethostname() and not _runs_elsewhere(sign["process"]):
        return True
    return time.time() - sign["time"] > SILENCE


def sign_of_life() -> dict[str, Any]:
    """The machine and number of this process, and the time."""
    return {"host": socket.gethostname(), "process": os.getpid(), "time": time.time()}


def _runs_elsewhere(process: int) -> bool:
    """Whether a process of this machine runs and is not this one, which is between trials."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True
