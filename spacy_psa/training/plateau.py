"""A learning rate that falls where development scores stop rising (Kitaev2018 appendix A.2).

spaCy's loop tells its optimizer's schedules nothing of the scores, but it tells its
logger. So the schedule comes with a logger, which hands on what it hears to every such
schedule of the process.
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
    """An endless iterator of rates, one an update, that `report` tells of scores.

    The s-th update, s = 1, 2, …, has the rate max_rate * factor^h * min(1, s / warmup),
    h the times that `patience` scores in a row were no better than the best before.
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
        # spaCy's loop scores after the first update, when it has asked for two rates.
        if self.step == self.warmup_steps + self.patience + 2 and not self.heard:
            warnings.warn(
                "warmup_halving.v1 hears no scores, so it never lowers the learning rate: "
                'set [training.logger] to @loggers = "spacy-psa.score_listener.v1"',
                stacklevel=2,
            )
        return self.rate

    @property
    def rate(self) -> float:
        """The rate of the update that was asked for last."""
        share = min(1.0, self.step / self.warmup_steps) if self.warmup_steps else 1.0
        return self.max_rate * self.factor**self.halvings * share

    def report(self, score: float) -> None:
        """Take note of a development score; those of the warm-up are never too low."""
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
    """`warmup_halving.v1`: up from 0 to `max_rate` in the first updates, and then halved
    each time the development score has not risen for a while (Kitaev2018 appendix A.2).

    Needs `score_listener.v1` as the logger of the training. The optimizer has the next
    update's rate before the score is known, so a new rate holds from the one after it.

    max_rate: Kitaev2018's code 8e-4. warmup_steps: updates of the linear rise (Kitaev2018: 160, an epoch).
    patience: evaluations in a row without a better score (Kitaev2018: 5 epochs of 4 evaluations).
    factor: what the rate is multiplied by.

    Errors: InputError for settings out of range.
    """
    if warmup_steps < 0 or patience < 1 or not 0 < factor < 1:
        raise InputError(
            f"warmup_halving.v1: warmup_steps is {warmup_steps}, patience {patience} and factor "
            f"{factor}; take 0 or more steps, a patience of 1 or more, a factor between 0 and 1"
        )
    return WarmupHalving(max_rate, warmup_steps, patience, factor)


def score_listener(logger: Logger) -> Logger:
    """`score_listener.v1`: a logger that tells `warmup_halving.v1` the scores.

    logger: the one that logs, as a block [training.logger.logger]; its score is the one
    that spaCy picks the best model by.
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
