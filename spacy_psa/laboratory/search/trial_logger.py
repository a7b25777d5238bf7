"""The logger of spaCy by which a training reports its scores to a search.

The search can end the training through it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Any

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language

Report = Callable[[int, float], None]
"""A function of the number of an evaluation, from 0, and its score; it may raise to end the
training."""
Setup = Callable[..., tuple[Callable, Callable]]
"""A logger of spaCy: (nlp, stdout, stderr) -> (log_step, finalize)."""

# spaCy makes loggers from the config, and a config cannot contain a function.
_REPORT: ContextVar[Report] = ContextVar("report")


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Let trainings with `trial_logger` call `report` within this block."""
    token = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(token)


def trial_logger(logger: Setup) -> Setup:
    """The logger `spacy-psa.trial_logger.v1`, which `spacy-psa search` sets in the config.

    Args:
        logger: the logger of the config. It is called as before, since a schedule may depend on it.

    Raises:
        InputError: when the training starts, if it was not started by a search.
    """

    def setup(nlp: "Language", stdout: IO, stderr: IO) -> tuple[Callable, Callable]:
        try:
            report = _REPORT.get()
        except LookupError as error:
            raise InputError(
                "[training.logger]: spacy-psa.trial_logger.v1 is for `spacy-psa search`; "
                "use spacy.ConsoleLogger.v3"
            ) from error
        log_own, finish = logger(nlp, stdout, stderr)
        evaluations = 0

        def log_step(info: dict[str, Any] | None) -> None:
            nonlocal evaluations
            log_own(info)
            if info is not None:
                report(evaluations, info["score"])
                evaluations += 1

        return log_step, finish

    return setup
