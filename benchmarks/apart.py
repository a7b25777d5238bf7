"""Run work in a forked process and measure its time and memory.

The process starts with all that its parent has opened, and leaves nothing behind for the next run.
This module imports nothing but the standard library, because Flair's worker also uses it. It needs
Linux.
"""

import json
import multiprocessing
import os
import resource
import time
import traceback
from collections.abc import Callable
from pathlib import Path

Work = Callable[[], int]
"""Does some work and returns its amount."""


def apart(
    warm: Callable[[], object], prepare: Callable[[], Work], workers: int = 1
) -> dict[str, float]:
    """Measure work in a process of its own.

    Args:
        warm: called first, so that what the first run always needs is not counted.
        prepare: makes the work. Its time is not counted, but what it leaves in memory is.
        workers: how many processes the work starts; 1 for none.

    Returns:
        `amount`; `seconds`; `cpu_seconds`, also of the processes that the work started; and
        `bytes`, the peak of resident memory, less what was resident before `prepare`.

    Raises:
        RuntimeError: if the process fails; its traceback is on stderr.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            text = json.dumps(_measured(warm, prepare, workers))
            os.write(writing, text.encode())
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the process that measures failed; its traceback is above")
    return dict(json.loads(text))


def _measured(
    warm: Callable[[], object], prepare: Callable[[], Work], workers: int
) -> dict[str, float]:
    warm()
    resident = _status("VmRSS")
    work = prepare()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
    before, start = _processor_time(), time.perf_counter()
    amount = work()
    for each in multiprocessing.active_children():
        each.join()
    seconds, cpu_seconds = time.perf_counter() - start, _processor_time() - before
    peak = _status("VmHWM") - resident
    if workers > 1:  # the peak of the largest; each also has what it shares with its parent
        largest = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        peak += workers * max(0, largest - resident)
    return {
        "amount": amount,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "bytes": peak,
    }


def _processor_time() -> float:
    """The seconds of processor time of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _status(key: str) -> int:
    """A line of /proc/self/status, in bytes."""
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{key}:")[1].split()[0])
