"""spaCy's training loop, with checkpoints from which a killed training continues."""

import json
import random
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, nullcontext
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.loop import (
    create_before_to_disk_callback,
    create_evaluation_callback,
    train_while_improving,
    update_meta,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Config, Optimizer, fix_random_seed, set_gpu_allocator

from spacy_psa.corpora.docbin import codecs_known
from spacy_psa.errors import InputError
from spacy_psa.training.ahead import STEPS, Ahead
from spacy_psa.training.checkpoint import (
    Checkpoints,
    get_random_states,
    restore_training,
    set_random_states,
    training_state,
)
from spacy_psa.training.data_parallel import DataParallel
from spacy_psa.training.finite_losses import FiniteLosses
from spacy_psa.training.identity import differences, identity
from spacy_psa.training.model_folders import ModelFolders, locked
from spacy_psa.training.processes import Processes
from spacy_psa.training.schedules import ScoreListener

Info = dict[str, Any]
Batch = list[Example]
Evaluation = tuple[float, dict[str, float]]


def train(
    nlp: Language,
    output: Path,
    *,
    resume: bool = False,
    save_every: int = 0,
    skip_bad_loss: bool = False,
    use_gpu: int = -1,
    processes: Processes | None = None,
    ahead: int | None = None,
    stdout: IO[str] | None = None,
    stderr: IO[str] | None = None,
) -> Path:
    """Train a pipeline as `spacy train` does, and save checkpoints to continue from.

    The steps, evaluations and the order of batches are spaCy's own. A training that was killed
    and is resumed ends with the same weights as one that was not.

    A finished training that is resumed stays as it is, if it had the same config and data; else a
    new one starts. A checkpoint of another config or other data is an error.

    Args:
        output: folder for model-best, model-last and checkpoints. The models are always whole.
        resume: continue from the last checkpoint, if there is one; else start again.
        save_every: steps between further checkpoints than those at evaluations; 0 for none.
        skip_bad_loss: leave out steps whose loss is not a finite number; else they are an error.
        processes: the processes that train together, each of which calls this function. Each
            trains on a batch of its own in a step, and the first writes all files. None if only
            this one trains.
        ahead: the steps whose examples a thread reads ahead, with the same result; None for
            `STEPS` of `training.ahead` on a GPU, and none on a CPU, where the thread would take
            time from the step. There are none with several processes, or annotating components.
        stdout: gets the progress; None for the process's.
        stderr: gets a line for each step that is left out; None for the process's.

    Returns:
        The folder of model-last.

    Raises:
        InputError: a loss is not a finite number; a file cannot be written; the checkpoint
            belongs to another training, or another process trains in the folder; one of
            `processes` has ended.
    """
    stdout, stderr = stdout or sys.stdout, stderr or sys.stderr
    processes = processes or Processes()
    if not processes.first:
        stdout = StringIO()
    config = nlp.config.interpolate()
    if config["training"]["seed"] is not None:
        fix_random_seed(config["training"]["seed"])
    if use_gpu >= 0 and config["training"]["gpu_allocator"]:
        set_gpu_allocator(config["training"]["gpu_allocator"])
    checkpoints, folders = Checkpoints(output), ModelFolders(output)
    this = identity(config)
    finished = checkpoints.finished if resume and folders.last.exists() else None
    finished = processes.share(finished)
    if finished == this:
        stdout.write(
            f"The training in {output} is finished, and has the same config and data. To train "
            "again, leave out --resume\n"
        )
        return folders.last
    if finished is not None:
        changed = ", ".join(differences(finished, this))
        stdout.write(f"Starting again: since the training in {output}, {changed} has changed\n")
    with locked(output) if processes.first else nullcontext(), codecs_known():
        saved = processes.share(checkpoints.load() if resume and processes.first else None)
        if saved is not None:
            _check_same(saved, this, processes, checkpoints)
        try:
            if processes.first:
                if saved is None:
                    checkpoints.remove()
                    folders.remove()
                else:
                    folders.repair()
                # spaCy writes no log where a file is; the earlier lines are logged again.
                _remove_log(config["training"]["logger"])
            if saved is not None:
                stdout.write(f"Resuming after step {saved['step']}\n")
            left_out = 0 if saved is None else saved["left_out"]
            guard = FiniteLosses(nlp, skip=skip_bad_loss, stderr=stderr, left_out=left_out)
            ahead = (STEPS if use_gpu >= 0 else 0) if ahead is None else ahead
            run = _Run(guard, config, saved, processes, ahead)
            _train(run, this, checkpoints, folders, save_every, stdout)
        except OSError as error:
            raise InputError(
                f"{output}: the training stopped, because a file cannot be read or written "
                f"({error}); correct this and continue with --resume"
            ) from error
    if guard.left_out:
        stderr.write(f"{guard.left_out} step(s) were left out, whose loss was not finite\n")
    return folders.last


def _train(
    run: "_Run",
    this: dict[str, Any],
    checkpoints: Checkpoints,
    folders: ModelFolders,
    save_every: int,
    stdout: IO[str],
) -> None:
    """Run all steps; save models at evaluations, checkpoints there and after `save_every` steps."""
    nlp, settings, saved, first = run.nlp, run.settings, run.saved, run.processes.first
    logger = settings["logger"]
    log_step, finalize_logger = (lambda info: None), (lambda: None)
    if first:
        with nlp.select_pipes(disable=run.frozen):
            log_step, finalize_logger = logger(nlp, stdout, run.guard.stderr)
    elif isinstance(logger, ScoreListener):
        log_step = logger.report
    before_to_disk = create_before_to_disk_callback(settings["before_to_disk"])

    def save_model(is_best: bool) -> None:
        with nlp.use_params(run.optimizer.averages):
            folders.save(before_to_disk(nlp), is_best=is_best)

    steps = run.steps()
    try:
        for info, is_best in steps:
            step, evaluated = info["step"], is_best is not None
            new = saved is None or step > saved["step"]
            if first and new and evaluated:
                with nlp.select_pipes(disable=run.frozen):
                    update_meta(settings, nlp, info)
                save_model(bool(is_best))
            log_step(info if evaluated else None)
            if new and (evaluated or (save_every and step and step % save_every == 0)):
                state = run.state()
                if first:
                    checkpoints.save(step, {"identity": this, **state})
        if first:
            save_model(False)
    finally:
        steps.close()
        finalize_logger()
    if first:
        checkpoints.finish(this)


class ResumableBatches:
    """Yields (epoch, parts) in the order of spaCy's training loop; can continue in the middle.

    Each epoch shuffles the examples and cuts them into batches. Each process trains on one of them
    in a step, so a step has as many parts as there are processes, the last step of an epoch perhaps
    fewer. An iterator that is made with the `state` of another one yields the batches that the
    other one would have yielded next.

    Args:
        max_epochs: number of epochs, 0 for no limit, -1 to stream the corpus from its reader
            in each epoch without a shuffle. These are spaCy's meanings.
        processes: the processes that train; all get the same order of examples.
        state: a `state`, or None to begin.
        ahead: passes the steps of an epoch on, such as an `Ahead`.

    Raises:
        InputError: the corpus has no example, or another number of them than when the state
            was saved.
    """

    def __init__(
        self,
        nlp: Language,
        corpus: Callable[[Language], Iterable[Example]],
        batcher: Callable[[Iterable[Example]], Iterable[Batch]],
        max_epochs: int,
        processes: Processes,
        state: dict[str, Any] | None = None,
        ahead: Callable[[Iterator[list[Batch]]], Iterator[list[Batch]]] = iter,
    ):
        self.nlp = nlp
        self.corpus = corpus
        self.batcher = batcher
        self.max_epochs = max_epochs
        self.processes = processes
        self.ahead = ahead
        self.epoch = 0
        self.taken = 0
        self.order: list[int] = []
        self.at_start: dict[str, Any] = {}
        self._saved = state
        self._examples = [] if max_epochs < 0 else list(corpus(nlp))
        if max_epochs >= 0 and not self._examples:
            raise InputError("the training corpus has no example; check [paths.train]")

    @property
    def state(self) -> dict[str, Any]:
        """The epoch, the order of its examples, the number of its steps so far, and the states of
        the random generators when its first batch was cut."""
        return {
            "epoch": self.epoch,
            "taken": self.taken,
            "order": list(self.order),
            "at_start": self.at_start,
        }

    def __iter__(self) -> Iterator[tuple[int, list[Batch]]]:
        self.order = list(range(len(self._examples)))
        if self._saved is not None:
            if len(self._saved["order"]) != len(self.order):
                raise InputError(
                    f"the training corpus has {len(self.order)} examples, and had "
                    f"{len(self._saved['order'])} when the checkpoint was saved: train on the "
                    "same corpus, or start again without --resume"
                )
            yield from self._rest(self._saved)
        while self.max_epochs < 1 or self.epoch != self.max_epochs:
            if self.max_epochs >= 0:
                random.shuffle(self.order)
                self.order = self.processes.share(self.order)
            self.at_start, self.taken = get_random_states(), 0
            yield from self._counted(self._cut())

    def _cut(self) -> Iterator[list[Batch]]:
        streams = self.max_epochs < 0
        ordered = self.corpus(self.nlp) if streams else [self._examples[i] for i in self.order]
        batches = iter(self.batcher(ordered))
        while parts := list(islice(batches, self.processes.count)):
            yield parts

    def _rest(self, saved: dict[str, Any]) -> Iterator[tuple[int, list[Batch]]]:
        """Yield the steps of the saved epoch that are not done yet."""
        self.epoch, self.order = saved["epoch"], list(saved["order"])
        self.at_start, self.taken = saved["at_start"], saved["taken"]
        now = get_random_states()
        set_random_states(self.at_start)
        steps = self._cut()
        for _ in range(self.taken):
            next(steps)
        set_random_states(now)
        yield from self._counted(steps)

    def _counted(self, steps: Iterator[list[Batch]]) -> Iterator[tuple[int, list[Batch]]]:
        for parts in self.ahead(steps):
            self.taken += 1
            yield self.epoch, parts
        self.epoch += 1


class _Run:
    """spaCy's loop over batches; the steps up to a checkpoint are replayed without work."""

    def __init__(
        self,
        guard: FiniteLosses,
        config: dict[str, Any],
        saved: dict[str, Any] | None,
        processes: Processes,
        ahead: int = 0,
    ):
        self.nlp = nlp = guard.nlp
        self.guard = guard
        self.processes = processes
        self.saved = saved
        settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
        self.settings: dict[str, Any] = settings
        self.optimizer: Optimizer = settings["optimizer"]
        names = [settings["train_corpus"], settings["dev_corpus"]]
        train_corpus, dev_corpus = resolve_dot_names(Config(config), names)
        self.frozen = list(settings["frozen_components"])
        self.ahead: Ahead | None = None
        if ahead and processes.count == 1 and not settings["annotating_components"]:
            self.ahead = Ahead(nlp, settings["accumulate_gradient"], self.frozen, ahead)
        self.batches = ResumableBatches(
            nlp,
            train_corpus,
            settings["batcher"],
            settings["max_epochs"],
            processes,
            None if saved is None else saved["batches"],
            self.ahead or iter,
        )
        if processes.count > 1:
            start = processes.share(training_state(nlp, self.optimizer) if saved is None else None)
            if start is not None:  # all begin with the weights of the first
                restore_training(nlp, self.optimizer, start)
        self.parallel = DataParallel(guard, processes, self.frozen) if processes.count > 1 else None
        self.evaluate = create_evaluation_callback(
            cast(Language, self.parallel or nlp),
            lambda _: dev_corpus(nlp),
            settings["score_weights"],
        )
        self.replaying = saved is not None
        # spaCy's loop reads this list at each step, and does not update its components.
        self.exclude = list(nlp.component_names) if self.replaying else list(self.frozen)
        self.past: list[Info] = [] if saved is None else json.loads(saved["evaluations"])
        self.evaluations: list[Info] = []
        self.partial: Info = {}
        self.words = 0
        self.seconds = 0

    def steps(self) -> Generator[tuple[Info, bool | None], None, None]:
        """Yield the steps of spaCy's `train_while_improving`, from step 0 on."""
        settings = self.settings
        with closing(self._batches()) as batches:  # an error ends the thread of `Ahead`, too
            for _, info, is_best in train_while_improving(
                cast(Language, self.parallel or self.guard),
                self.optimizer,
                batches,
                self._evaluate,
                dropout=settings["dropout"],
                eval_frequency=settings["eval_frequency"],
                accumulate_gradient=settings["accumulate_gradient"],
                patience=settings["patience"],
                max_steps=settings["max_steps"],
                exclude=self.exclude,
                annotating_components=settings["annotating_components"],
                before_update=self._before_update,
            ):
                self._complete(info, is_best is not None)
                yield info, is_best

    def state(self) -> dict[str, Any]:
        """The state of the training for a checkpoint."""
        return {
            "batches": self.batches.state,
            "evaluations": json.dumps(self.evaluations, default=float),
            "partial": {name: float(loss) for name, loss in self.partial.items()},
            "words": self.words,
            "seconds": self.seconds,
            "left_out": self.guard.left_out,
            "processes": self.processes.count,
            "parallel": None if self.parallel is None else self.parallel.state(),
            **training_state(self.nlp, self.optimizer),
        }

    def _batches(self) -> Generator[tuple[int, Batch], None, None]:
        if self.saved is not None:
            # The epoch of a step is known where there was an evaluation.
            known, epoch = {info["step"]: info["epoch"] for info in self.past}, 0
            for step in range(self.saved["step"] + 1):
                epoch = known.get(step, epoch)
                yield epoch, []
            restore_training(self.nlp, self.optimizer, self.saved)
            if self.parallel is not None:
                self.parallel.load_state(self.saved["parallel"])
            self.replaying = False
            self.exclude[:] = self.frozen
        for epoch, parts in self.batches:
            batch = parts[0] if self.parallel is None else self.parallel.begin(parts)
            self.guard.batch = batch
            self.guard.ready = iter(self.ahead.ready if self.ahead else ())
            yield epoch, batch

    def _evaluate(self) -> Evaluation:
        if self.replaying:
            past = self.past[len(self.evaluations)]
            return past["score"], past["other_scores"]
        return self.evaluate()

    def _before_update(self, _: Any, step: dict[str, Any]) -> None:
        self.guard.begin(step["step"])
        if not self.replaying and self.settings["before_update"]:
            self.settings["before_update"](self.nlp, step)

    def _complete(self, info: Info, evaluated: bool) -> None:
        """Bring what was logged before the checkpoint into the info of a step."""
        if self.saved is not None and info["step"] <= self.saved["step"]:
            if evaluated:
                info.update(self.past[len(self.evaluations)])
        else:
            before = self.saved or {"partial": {}, "words": 0, "seconds": 0}
            if len(self.evaluations) == len(self.past):  # the losses since the last evaluation
                names = info["losses"].keys() | before["partial"].keys()
                info["losses"] = {
                    name: info["losses"].get(name, 0.0) + before["partial"].get(name, 0.0)
                    for name in sorted(names)
                }
            info["words"] += before["words"]
            info["seconds"] += before["seconds"]
        self.words, self.seconds = info["words"], info["seconds"]
        self.partial = {} if evaluated else info["losses"]
        if evaluated:
            kept = ("epoch", "step", "score", "other_scores", "losses", "seconds", "words")
            self.evaluations.append({key: info[key] for key in kept})


def _check_same(
    saved: dict[str, Any], now: dict[str, Any], processes: Processes, checkpoints: Checkpoints
) -> None:
    """Raise InputError where a checkpoint is of another training."""
    before = saved.get("processes", 1)
    if before != processes.count:
        raise InputError(
            f"{checkpoints.folder}: the training was killed there with {before} process(es), not "
            f"{processes.count}: resume it with {before}, or start again without --resume"
        )
    changed = differences(saved["identity"], now)
    if changed:
        raise InputError(
            f"{checkpoints.folder}: the training was killed there with another config or other "
            f"data ({', '.join(changed)} differs): resume it with the same, or remove this folder "
            "or leave out --resume to start again"
        )


def _remove_log(logger: dict[str, Any]) -> None:
    """Remove the file that a logger, or one inside of it, writes to."""
    for key, value in logger.items():
        if isinstance(value, dict):
            _remove_log(value)
        elif key == "output_file" and value:
            Path(value).unlink(missing_ok=True)
