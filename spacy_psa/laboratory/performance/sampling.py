"""Samples what the main thread of this process is doing, for a profile."""

import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from spacy_psa.errors import InputError

Key = TypeVar("Key")
INTERVAL = 0.002
"""Seconds between two samples."""


@contextmanager
def sampled(read: Callable[[FrameType | None], Key]) -> Iterator[Counter[Key]]:
    """Count the processor time of the block by what the main thread does in it.

    A timer interrupts the block every `INTERVAL`. Each time, the processor time of the process
    since the interrupt before counts for what runs then. Python answers an interrupt at the end of
    a call into C, so a long matrix product counts in full, and for the function that called it.
    The time of the samples themselves does not count.

    Args:
        read: called with the frame that runs; gives what its time is counted for.

    Yields:
        {what `read` gives: seconds of processor time}, which is complete after the block.

    Raises:
        InputError: outside of the main thread, and on a system without such timers (Windows).

    Examples:
        >>> with sampled(lambda frame: "work") as seconds:
        ...     total = sum(i * i for i in range(1_000_000))
        >>> list(seconds), seconds["work"] > 0
        (['work'], True)
    """
    if not hasattr(signal, "setitimer"):
        raise InputError("a profile needs the timers of Linux or macOS: use one of these systems")
    if threading.current_thread() is not threading.main_thread():
        raise InputError("a profile is made in the main thread of a program: call it there")
    seconds: Counter[Key] = Counter()
    last = time.process_time()

    def sample(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.process_time()
        seconds[read(frame)] += now - last  # type: ignore[assignment]  # a float
        signal.setitimer(signal.ITIMER_REAL, INTERVAL)  # only now, so samples never nest
        last = time.process_time()

    before = signal.signal(signal.SIGALRM, sample)
    signal.setitimer(signal.ITIMER_REAL, INTERVAL)
    try:
        yield seconds
    finally:
        sample(signal.SIGALRM, sys._getframe(2))
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
