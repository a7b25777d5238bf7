"""Tells trials that another process is training from those that were interrupted."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from optuna import Trial
from optuna.trial import FrozenTrial

PRESENT = "present"
"""The attribute of a trial that says who trains it, and when that process was last heard of."""
EVERY = 30.0
"""Seconds between two signs of life."""
SILENCE = 300.0
"""Seconds without a sign of life after which a process on another machine is taken for dead."""


@contextmanager
def present(trial: Trial) -> Iterator[None]:
    """Give signs of life of the process that trains a trial, inside of this block."""
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

    Of a process on this machine it is known at once, of another one after some minutes of silence.
    """
    sign: dict[str, Any] | None = trial.user_attrs.get(PRESENT)
    if sign is None:  # of an earlier version
        return True
    if sign["host"] == socket.gethostname():
        return not _runs_elsewhere(sign["process"])
    return time.time() - sign["time"] > SILENCE


def sign_of_life() -> dict[str, Any]:
    """Who this process is, and that it runs now."""
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
