"""spaCy's training loop, with checkpoints from which a killed training goes on."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import IO, Any, cast

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
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
from spacy_psa.training.checkpoint import Checkpoints, restore_training, training_state
from spacy_psa.training.data_parallel import DataParallel
from spacy_psa.training.finite_losses import FiniteLosses
from spacy_psa.training.folder_lock import locked
from spacy_psa.training.identity import differences, identity
from spacy_psa.training.model_folders import ModelFolders
from spacy_psa.training.processes import ALONE, Processes
from spacy_psa.training.resumable_batches import Batch, ResumableBatches

Info = dict[str, Any]
Evaluation = tuple[float, dict[str, float]]


def train(
    nlp: Language,
    output: Path,
    *,
    resume: bool = False,
    save_every: int = 0,
    skip_bad_loss: bool = False,
    use_gpu: int = -1,
    processes: Processes = ALONE,
    stdout: IO[str] | None = None,
    stderr: IO[str] | None = None,
) -> Path:
    """Train a pipeline as `spacy train` does, and save checkpoints to go on from.

    The steps, evaluations and the order of batches are spaCy's own. A training that was killed
    and is resumed ends with the same weights as one that was not.

    A finished training that is resumed stays as it is, if it had the same config and data; else a
    new one starts. A checkpoint of another config or other data is an error.

    Args:
        nlp: the initialized pipeline with its full config.
        output: folder for model-best, model-last and checkpoints. Both models are written
            aside and then renamed, so they are never half-written.
        resume: go on from the last checkpoint, if there is one; else start again.
        save_every: steps between checkpoints, beside those at evaluations; 0 for none.
        skip_bad_loss: leave out steps whose loss is not a finite number; else they are an error.
        use_gpu: number of the GPU, -1 for the CPU.
        processes: the processes that train together, each of which calls this function. Each takes
            a batch of its own in a step, and the first writes all files.
        stdout: where progress is told; None for the process's.
        stderr: where steps that are left out are told; None for the process's.

    Returns:
        The folder of model-last.

    Raises:
        InputError: a loss is not a finite number; a file cannot be written; the checkpoint
            belongs to another training, or another process trains in the folder; one of
            `processes` has ended.
    """
    stdout, stderr = stdout or sys.stdout, stderr or sys.stderr
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
                _prepare(saved, checkpoints, folders)
                # spaCy writes no log where a file is; what was logged before is logged again.
                _remove_log(config["training"]["logger"])
            if saved is not None:
                stdout.write(f"Resuming after step {saved['step']}\n")
            settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
            left_out = 0 if saved is None else saved["left_out"]
            guard = FiniteLosses(nlp, skip=skip_bad_loss, stderr=stderr, left_out=left_out)
            run = _Run(nlp, guard, settings, config, saved, processes)
            _train(run, this, checkpoints, folders, save_every, stdout, stderr)
        except OSError as error:
            raise InputError(
                f"{output}: the training stopped, because a file cannot be read or written "
                f"({error}); mend that and go on with --resume"
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
    stderr: IO[str],
) -> None:
    """Run all steps; save models at evaluations, checkpoints there and after `save_every` steps."""

    def is_due(info: Info, is_best: bool | None) -> bool:
        step: int = info["step"]
        new = run.saved is None or step > run.saved["step"]
        return new and (is_best is not None or bool(save_every and step and step % save_every == 0))

    nlp, settings = run.nlp, run.settings
    optimizer, saved = run.optimizer, run.saved
    if not run.processes.first:
        for info, is_best in run.steps():
            if is_due(info, is_best):
                run.state()
        return
    with nlp.select_pipes(disable=settings["frozen_components"]):
        log_step, finalize_logger = settings["logger"](nlp, stdout, stderr)
    before_to_disk = create_before_to_disk_callback(settings["before_to_disk"])
    try:
        for info, is_best in run.steps():
            new = saved is None or info["step"] > saved["step"]
            if is_best is not None and new:
                with nlp.select_pipes(disable=settings["frozen_components"]):
                    update_meta(settings, nlp, info)
                with nlp.use_params(optimizer.averages):
                    folders.save(before_to_disk(nlp), is_best=is_best)
            log_step(info if is_best is not None else None)
            if is_due(info, is_best):
                checkpoints.save(info["step"], {"identity": this, **run.state()})
        with nlp.use_params(optimizer.averages):
            folders.save(before_to_disk(nlp), is_best=False)
    finally:
        finalize_logger()
    checkpoints.finish(this)


class _Run:
    """spaCy's loop over batches; the steps up to a checkpoint are replayed without work."""

    def __init__(
        self,
        nlp: Language,
        guard: FiniteLosses,
        settings: dict[str, Any],
        config: dict[str, Any],
        saved: dict[str, Any] | None,
        processes: Processes,
    ):
        self.nlp = nlp
        self.guard = guard
        self.processes = processes
        self.settings = settings
        self.saved = saved
        self.optimizer: Optimizer = settings["optimizer"]
        names = [settings["train_corpus"], settings["dev_corpus"]]
        train_corpus, dev_corpus = resolve_dot_names(Config(config), names)
        self.batches = ResumableBatches(
            nlp,
            train_corpus,
            settings["batcher"],
            settings["max_epochs"],
            processes,
            None if saved is None else saved["batches"],
        )
        self.frozen = list(settings["frozen_components"])
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
        # spaCy's loop reads this list at each step: what stands in it is not updated.
        self.exclude = list(nlp.component_names) if self.replaying else list(self.frozen)
        self.past: list[Info] = [] if saved is None else json.loads(saved["evaluations"])
        self.evaluations: list[Info] = []
        self.partial: Info = {}
        self.words = 0
        self.seconds = 0

    def steps(self) -> Iterator[tuple[Info, bool | None]]:
        """What spaCy's `train_while_improving` yields, from step 0 on."""
        settings = self.settings
        for _, info, is_best in train_while_improving(
            cast(Language, self.parallel or self.guard),
            self.optimizer,
            self._batches(),
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
        """What a checkpoint holds of the training."""
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

    def _batches(self) -> Iterator[tuple[int, Batch]]:
        if self.saved is not None:
            for epoch in self._past_epochs(self.saved["step"]):
                yield epoch, []
            self._go_on(self.saved)
        for epoch, parts in self.batches:
            yield epoch, parts[0] if self.parallel is None else self.parallel.begin(parts)

    def _past_epochs(self, last: int) -> Iterator[int]:
        """The epoch of each step up to the last; it is known where there was an evaluation."""
        known = {info["step"]: info["epoch"] for info in self.past}
        epoch = 0
        for step in range(last + 1):
            epoch = known.get(step, epoch)
            yield epoch

    def _go_on(self, saved: dict[str, Any]) -> None:
        restore_training(self.nlp, self.optimizer, saved)
        if self.parallel is not None:
            self.parallel.load_state(saved["parallel"])
        self.replaying = False
        self.exclude[:] = self.frozen

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


def _prepare(saved: dict[str, Any] | None, checkpoints: Checkpoints, folders: ModelFolders) -> None:
    """Remove what an earlier training left, or mend what a kill left."""
    if saved is None:
        checkpoints.remove()
        folders.remove()
    else:
        folders.repair()


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
