"""Tells before a training starts that it would not be evaluated."""

import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from spacy.language import Language
from spacy.training import Example
from spacy.util import dot_to_object, registry
from thinc.api import Config

from spacy_psa.training.random_states import get_random_states, set_random_states

ENDS = "the training ends after"


def warn_of_no_evaluation(nlp: Language) -> None:
    """Warn of a training that ends before the first evaluation after step 0.

    Args:
        nlp: the pipeline with its full config.
    """
    told = no_evaluation(nlp)
    if told:
        warnings.warn(told, stacklevel=2)


def no_evaluation(nlp: Language, processes: int = 1) -> str | None:
    """Tell of a training that ends before the first evaluation after step 0.

    Its model-best would be that of step 0, which is almost untrained. Nothing is read of the
    training data unless the number of epochs bounds the training, and then no more than is needed.

    Args:
        nlp: the pipeline with its full config.
        processes: the number of processes that train together; each takes a batch in a step.

    Returns:
        What is wrong and what to do; None for a training that is evaluated.
    """
    config = nlp.config.interpolate()
    training = config["training"]
    every = training["eval_frequency"]
    last = _last_step(nlp, config, every, processes)
    if last is None:
        return None
    advice = (
        f"give --training.eval_frequency {max(1, last // 2)} or less, or a config that "
        "`spacy-psa init config` counts for the corpus"
        if last
        else "give more --training.max_epochs or --training.max_steps"
    )
    return (
        f"{ENDS} {last + 1:,} update(s), and eval_frequency is {every:,}: it is evaluated at step "
        f"0 alone, so model-best will be almost untrained; {advice}"
    )


def _last_step(nlp: Language, config: Config, enough: int, processes: int) -> int | None:
    """Give the number of the last step, from 0; None if it is `enough` or more, or not known."""
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
    section = dot_to_object(config, config["training"]["train_corpus"])
    path = section.get("path", "")
    if path is None or (isinstance(path, str) and path and not Path(path).exists()):
        return None
    with _random_states_kept():
        parts = registry.resolve({"corpus": section, "batcher": config["training"]["batcher"]})
        examples: Iterable[Example] = parts["corpus"](nlp)
        return sum(1 for _ in islice(parts["batcher"](examples), most))


@contextmanager
def _random_states_kept() -> Iterator[None]:
    """Let the training draw the same numbers as if nothing had been read inside."""
    states = get_random_states()
    try:
        yield
    finally:
        set_random_states(states)
