"""A learning rate that falls when development scores stop rising (Kitaev2018 appendix A.2).

spaCy's training loop tells the scores to its logger, but not to the schedules of its optimizer. So
the schedule comes with a logger, which passes the scores on to every such schedule of the process.
"""

import sys
import warnings
from collections.abc import Callable
from typing import IO, Any
from weakref import WeakSet

from spacy.language import Language

from spacy_psa.errors import InputError

LogStep = Callable[[dict[str, Any] | None], None]
Logger = Callable[[Language, IO, IO], tuple[LogStep, Callable[[], None]]]

_listening: "WeakSet[WarmupHalving]" = WeakSet()


class WarmupHalving:
    """An endless iterator of learning rates, one for each update, that `report` tells the scores.

    The rate of the s-th update, s = 1, 2, …, is

        max_rate * factor^h * min(1, s / warmup_steps),

    where h counts how often `patience` scores in a row were no better than the best one before.

    Args:
        max_rate: the rate after the warm-up.
        warmup_steps: number of updates in which the rate rises.
        patience: number of scores in a row without a better one until the rate falls.
        factor: number that the rate is multiplied by when it falls.

    Examples:
        >>> schedule = WarmupHalving(0.8, warmup_steps=2, patience=1, factor=0.5)
        >>> [next(schedule) for _ in range(3)]
        [0.4, 0.8, 0.8]
        >>> schedule.report(0.9)
        >>> schedule.report(0.9)
        >>> next(schedule)
        0.4
    """

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
        """Take note of a development score. Scores of the warm-up never lower the rate."""
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

    The learning rate rises from 0 to `max_rate` in the first updates. Then it is halved each time
    the development score has not risen for a while.

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
        >>> schedule = warmup_halving(8e-4, warmup_steps=4)
        >>> [next(schedule) for _ in range(5)]
        [0.0002, 0.0004, 0.0006000000000000001, 0.0008, 0.0008]
    """
    if warmup_steps < 0 or patience < 1 or not 0 < factor < 1:
        raise InputError(
            f"warmup_halving.v1: warmup_steps is {warmup_steps}, patience {patience} and factor "
            f"{factor}: take 0 or more steps, a patience of 1 or more and a factor between 0 and 1"
        )
    return WarmupHalving(max_rate, warmup_steps, patience, factor)


def score_listener(logger: Logger) -> Logger:
    """Build the logger `score_listener.v1`, which tells the scores to `warmup_halving.v1`.

    Args:
        logger: the logger that logs, as a block [training.logger.logger]. The score is the one by
            which spaCy chooses the best model.

    Examples:
        >>> from spacy.training.loggers import console_logger
        >>> logger = score_listener(console_logger())
    """

    def setup(
        nlp: Language, stdout: IO = sys.stdout, stderr: IO = sys.stderr
    ) -> tuple[LogStep, Callable[[], None]]:
        log_step, finalize = logger(nlp, stdout, stderr)

        def log_and_report(info: dict[str, Any] | None) -> None:
            log_step(info)
            if info is not None and info["score"] is not None:
                for schedule in list(_listening):
                    schedule.report(info["score"])

        return log_and_report, finalize

    return setup
