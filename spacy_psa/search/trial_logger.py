"""How a training tells a search of its scores, and a search ends it: as a logger of spaCy's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Any

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language

Report = Callable[[int, float], None]
"""Takes the number of an evaluation, from 0, and the score; raises to end the training."""
Setup = Callable[..., tuple[Callable, Callable]]
"""A logger as spaCy has it: (nlp, stdout, stderr) -> (log_step, finalize)."""

# spaCy makes loggers from the config, which cannot hold a function.
_REPORT: ContextVar[Report] = ContextVar("report")


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Within the context, trainings with the logger below call `report`."""
    token = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(token)


def trial_logger(logger: Setup) -> Setup:
    """`trial_logger.v1`: the logger that `spacy-psa search` sets.

    logger: the config's own, which goes on as before; a schedule may hear from it.

    Errors: InputError in a training that no search started.
    """

    def setup(nlp: "Language", stdout: IO, stderr: IO) -> tuple[Callable, Callable]:
        try:
            report = _REPORT.get()
        except LookupError as error:
            raise InputError(
                "[training.logger]: spacy-psa.trial_logger.v1 is for `spacy-psa search`; "
                "take spacy.ConsoleLogger.v3"
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
