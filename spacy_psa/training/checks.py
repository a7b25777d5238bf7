"""Checks after initialization and before the first update."""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.training import Example
from spacy.util import dot_to_object, registry
from thinc.api import Config

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.training.checkpoint import get_random_states, set_random_states

_later: ContextVar[bool] = ContextVar("later", default=False)


def check_dev_labels() -> Callable[[Language], None]:
    """Build the callback `check_dev_labels.v1`, which checks the labels of the development data.

    It is for [initialize.after_init]. No training starts if the corpus that `training.dev_corpus`
    names has a label that a `crf_*` component lacks, since the component could never predict it.
    Nothing is checked if the path of the corpus is null, as when a pipeline is initialized from
    Python, nor, with a warning, if there is no such file, as when a trained pipeline is initialized
    again on another machine. Test data is never read.

    A training that would end before its first evaluation after step 0 causes a warning.

    `--initialize.after_init null` turns the check off on the command line.

    Returns:
        A function of the pipeline. It raises InputError with the labels and the component.
    """
    return _check


@contextmanager
def evaluation_checked_later() -> Iterator[None]:
    """Make a context in which `check_dev_labels` does not call `no_evaluation`, as it is later."""
    token = _later.set(True)
    try:
        yield
    finally:
        _later.reset(token)


def _check(nlp: Language) -> None:
    warning = None if _later.get() else no_evaluation(nlp)
    if warning:
        warnings.warn(warning, stacklevel=2)
    labelers = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, ChainLabeler)]
    config = nlp.config.interpolate()
    name = config["training"]["dev_corpus"]
    section, path = _corpus(config, "dev_corpus")
    if not labelers or path is None:
        return
    if not _is_there(path):
        warnings.warn(
            f"{path}: there is no such file, so the labels of the development data are not checked",
            stacklevel=2,
        )
        return
    resolved = registry.resolve({"corpus": section})
    examples: Iterable[Example] = list(resolved["corpus"](nlp))
    for pipe in labelers:
        unseen = sorted(set(pipe._find_labels(examples)) - set(pipe.labels))
        if unseen:
            raise InputError(
                f"{path or name}: the training data lacks {len(unseen)} label(s) that "
                f"{pipe.name!r} finds here, {', '.join(unseen)}: correct [paths.train] or "
                f"[paths.dev], or name all labels in [initialize.components.{pipe.name}.labels], "
                "or train without these labels by --initialize.after_init null"
            )


def no_evaluation(nlp: Language, processes: int = 1) -> str | None:
    """Return a warning if a training ends before the first evaluation after step 0.

    Its model-best would be that of step 0, which is almost untrained. Nothing is read of the
    training data unless the number of epochs bounds the training, and then no more than is needed.
    With several `processes`, each trains on a batch in a step.
    """
    config = nlp.config.interpolate()
    every = config["training"]["eval_frequency"]
    last = _last_step(nlp, config, every, processes)
    if last is None:
        return None
    advice = (
        f"set --training.eval_frequency {max(1, last // 2)} or less, or use a config that "
        "`spacy-psa init config` counts for the corpus"
        if last
        else "set more --training.max_epochs or --training.max_steps"
    )
    return (
        f"the training ends after {last + 1:,} update(s), and eval_frequency is {every:,}: it is "
        f"only evaluated at step 0, so model-best will be almost untrained; {advice}"
    )


def _last_step(nlp: Language, config: Config, enough: int, processes: int) -> int | None:
    """The number of the last step, from 0; None if it is `enough` or more, or not known."""
    training = config["training"]
    bounds = []
    if training["max_steps"] > 0:
        bounds.append(training["max_steps"])
    if training["max_epochs"] > 0:
        most = (enough // training["max_epochs"] + 1) * processes
        epoch = _count_batches(nlp, config, most)
        if epoch is not None:
            bounds.append(math.ceil(epoch / processes) * training["max_epochs"] - 1)
    return min((last for last in bounds if 0 <= last < enough), default=None)


def _count_batches(nlp: Language, config: Config, most: int) -> int | None:
    """Count the updates of an epoch, up to `most`; None if there are no training data to read."""
    section, path = _corpus(config, "train_corpus")
    if path is None or not _is_there(path):
        return None
    states = get_random_states()
    try:
        parts = registry.resolve({"corpus": section, "batcher": config["training"]["batcher"]})
        examples: Iterable[Example] = parts["corpus"](nlp)
        return sum(1 for _ in islice(parts["batcher"](examples), most))
    finally:  # the training draws the same numbers as if nothing had been read
        set_random_states(states)


def _corpus(config: Config, kind: str) -> tuple[dict[str, Any], Any]:
    """The section of a corpus, and its path; "" if it has none."""
    section = dot_to_object(config, config["training"][kind])
    return section, section.get("path", "")


def _is_there(path: Any) -> bool:
    return not isinstance(path, str) or not path or Path(path).exists()
