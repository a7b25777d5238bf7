"""Learning rate schedules of the papers: endless iterables of rates, one for each update.

spaCy's training loop passes the development scores to its logger, but not to the schedules of its
optimizer. So `warmup_halving` comes with a logger, which passes them on to every such schedule of
the process.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from math import cos, pi
from typing import IO, Any
from weakref import WeakSet

from spacy.language import Language

from spacy_psa.errors import InputError, check_amounts, check_rates, check_sizes, naming

LogStep = Callable[[dict[str, Any] | None], None]
Logger = Callable[[Language, IO, IO], tuple[LogStep, Callable[[], None]]]

_listening: "WeakSet[WarmupHalving]" = WeakSet()


def inverse_decay(initial_rate: float, decay: float, steps_per_epoch: int) -> Iterator[float]:
    """Build the schedule `inverse_decay.v1`, in which the learning rate falls with each epoch.

    With t the number of completed epochs, the rate is

        initial_rate / (1 + decay * t).

    Wei2020 (section 5.2) has an initial rate of 0.015 for NER and a decay of 0.05.

    Args:
        initial_rate: the rate in the first epoch.
        decay: how fast the rate falls.
        steps_per_epoch: number of batches in one pass over the training data; spaCy's loop does
            not pass the epoch to an optimizer.

    Raises:
        InputError: if `steps_per_epoch` is below 1, or another number below 0.

    Examples:
        >>> schedule = inverse_decay(0.1, decay=1.0, steps_per_epoch=2)
        >>> [next(schedule) for _ in range(4)]
        [0.1, 0.1, 0.05, 0.05]
    """
    with naming("inverse_decay.v1"):
        check_sizes(steps_per_epoch=steps_per_epoch)
        check_amounts(initial_rate=initial_rate, decay=decay)
    return (initial_rate / (1.0 + decay * (step // steps_per_epoch)) for step in count())


def triangular(max_rate: float, total_steps: int, warmup: float = 0.01) -> Iterator[float]:
    """Build the schedule `triangular.v1`, in which the learning rate rises from 0 and falls to 0.

    With S = total_steps and w = warmup * S, the rate of the s-th update, s = 1, 2, …, is

        max_rate * s / w                for s <= w
        max_rate * (S - s) / (S - w)    for w < s <= S

    and 0 after that. Yan2019 (section 4.1, after Smith 2017) lets it rise in the first 1% of the
    updates.

    Args:
        max_rate: the highest rate.
        total_steps: number of updates of the whole training: epochs times batches in an epoch.
        warmup: share of the updates in which the rate rises, from 0 to less than 1.

    Raises:
        InputError: if `total_steps` is below 1, `max_rate` below 0, or `warmup` not from 0 to less
            than 1.

    Examples:
        >>> schedule = triangular(1.0, total_steps=4, warmup=0.5)
        >>> [next(schedule) for _ in range(5)]
        [0.5, 1.0, 0.5, 0.0, 0.0]
    """

    def fall(step: int, rising: float) -> float:
        return max_rate * max(0, total_steps - step) / (total_steps - rising)

    return _rise_and_fall("triangular.v1", max_rate, total_steps, warmup, fall)


def cosine(max_rate: float, total_steps: int, warmup: float = 0.01) -> Iterator[float]:
    """Build the schedule `cosine.v1`, in which the learning rate falls as a cosine from 0 to π.

    With S = total_steps and w = warmup * S, the rate of the s-th update, s = 1, 2, …, is

        max_rate * s / w                                        for s <= w
        max_rate * (1 + cos(π * (s - w) / (S - w))) / 2         for w < s <= S

    and 0 after that (Loshchilov and Hutter 2017, Eq. 5, after a rise).

    Args:
        max_rate, total_steps, warmup: as in `triangular`.

    Raises:
        InputError: as in `triangular`.

    Examples:
        >>> schedule = cosine(1.0, total_steps=4, warmup=0.5)
        >>> [round(next(schedule), 6) for _ in range(5)]
        [0.5, 1.0, 0.5, 0.0, 0.0]
    """

    def fall(step: int, rising: float) -> float:
        share = min(1.0, (step - rising) / (total_steps - rising))
        return max_rate * (1 + cos(pi * share)) / 2

    return _rise_and_fall("cosine.v1", max_rate, total_steps, warmup, fall)


def _rise_and_fall(
    name: str, max_rate: float, total_steps: int, warmup: float, fall: Callable[[int, float], float]
) -> Iterator[float]:
    with naming(name):
        check_amounts(max_rate=max_rate)
        check_sizes(total_steps=total_steps)
        check_rates(below_one=True, warmup=warmup)
    rising = warmup * total_steps
    return (max_rate * n / rising if n <= rising else fall(n, rising) for n in count(1))


class WarmupHalving:
    """The iterator of rates that `warmup_halving` builds; `report` passes it the scores."""

    def __init__(self, max_rate: float, warmup_steps: int, patience: int, factor: float):
        self.max_rate = max_rate
        self.warmup_steps = warmup_steps
        self.patience = patience
        self.factor = factor
        self.step = 0
        self.halvings = 0
        self.waited = 0
        self.best = float("-inf")
        self.heard = False
        _listening.add(self)

    def __iter__(self) -> "WarmupHalving":
        return self

    def __next__(self) -> float:
        self.step += 1
        # spaCy's loop first scores after one update; by then it has asked for two rates.
        if self.step == self.warmup_steps + self.patience + 2 and not self.heard:
            warnings.warn(
                "warmup_halving.v1 gets no scores, so it never lowers the learning rate: "
                'set [training.logger] to @loggers = "spacy-psa.score_listener.v1"',
                stacklevel=2,
            )
        return self.rate

    @property
    def rate(self) -> float:
        """The rate of the latest update."""
        share = min(1.0, self.step / self.warmup_steps) if self.warmup_steps else 1.0
        return self.max_rate * self.factor**self.halvings * share

    def report(self, score: float) -> None:
        """Note a development score. Scores of the warm-up never lower the rate."""
        self.heard = True
        if score > self.best:
            self.best, self.waited = score, 0
        elif self.step > self.warmup_steps:
            self.waited += 1
            if self.waited == self.patience:
                self.halvings, self.waited = self.halvings + 1, 0


def warmup_halving(
    max_rate: float, warmup_steps: int = 160, patience: int = 20, factor: float = 0.5
) -> WarmupHalving:
    """Build the schedule `warmup_halving.v1` (Kitaev2018 appendix A.2).

    The learning rate rises from 0 in the first updates. Then it is halved each time the development
    score has not risen for a while. The rate of the s-th update, s = 1, 2, …, is

        max_rate * factor^h * min(1, s / warmup_steps),

    where h counts how often `patience` scores in a row were not better than the best one before.

    It needs `score_listener.v1` as the logger of the training. The optimizer has the rate of the
    next update before the score is known, so a new rate holds from the update after that.

    Args:
        max_rate: the rate after the warm-up (8e-4 in the code of Kitaev2018).
        warmup_steps: number of updates in which the rate rises (Kitaev2018: 160, an epoch).
        patience: number of evaluations in a row without a better score until the rate falls
            (Kitaev2018: 5 epochs of 4 evaluations).
        factor: number that the rate is multiplied by when it falls.

    Raises:
        InputError: if a setting is out of range.

    Examples:
        >>> schedule = warmup_halving(0.8, warmup_steps=2, patience=1)
        >>> [next(schedule) for _ in range(3)]
        [0.4, 0.8, 0.8]
        >>> schedule.report(0.9)
        >>> schedule.report(0.9)
        >>> next(schedule)
        0.4
    """
    if warmup_steps < 0 or patience < 1 or not 0 < factor < 1:
        raise InputError(
            f"warmup_halving.v1: warmup_steps is {warmup_steps}, patience {patience} and factor "
            f"{factor}: set 0 or more steps, a patience of 1 or more and a factor between 0 and 1"
        )
    return WarmupHalving(max_rate, warmup_steps, patience, factor)


class ScoreListener:
    """A logger that passes the scores to `warmup_halving.v1`, see `score_listener`."""

    def __init__(self, logger: Logger):
        self.logger = logger

    def __call__(
        self, nlp: Language, stdout: IO = sys.stdout, stderr: IO = sys.stderr
    ) -> tuple[LogStep, Callable[[], None]]:
        log_step, finalize = self.logger(nlp, stdout, stderr)

        def log_and_report(info: dict[str, Any] | None) -> None:
            log_step(info)
            self.report(info)

        return log_and_report, finalize

    def report(self, info: dict[str, Any] | None) -> None:
        """Pass on the score of a step, if it has one, without logging it."""
        if info is not None and info["score"] is not None:
            for schedule in list(_listening):
                schedule.report(info["score"])


def score_listener(logger: Logger) -> Logger:
    """Build the logger `score_listener.v1`, which passes the scores to `warmup_halving.v1`.

    Args:
        logger: the logger that logs, as a block [training.logger.logger]. The score is the one by
            which spaCy chooses the best model.
    """
    return ScoreListener(logger)
