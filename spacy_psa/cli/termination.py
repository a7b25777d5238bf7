"""A command that is told to end removes what it has not completed."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

NAMES = "SIGTERM", "SIGHUP"  # Windows has no SIGHUP


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end this block by `SystemExit`, so that temporary files are removed.

    A signal that is ignored, as under nohup, or that has another handler, keeps what it does.
    """
    process = os.getpid()

    def end(number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != process:  # a forked worker, which has nothing to remove
            os.kill(os.getpid(), number)
        raise SystemExit(128 + number)

    if current_thread() is not main_thread():  # no other may set handlers
        yield
        return
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
