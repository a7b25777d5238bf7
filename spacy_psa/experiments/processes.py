"""Runs of a plan as processes of one thread each, some at a time."""

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import NamedTuple

OUTPUT = "output.txt"
TICK = 0.25
"""Seconds between two looks at the processes."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


class Ended(NamedTuple):
    """A process that has ended."""

    folder: Path
    code: int | None
    """Its exit code, below 0 for a signal; None if nobody knows."""


def run_locally(
    folders: Sequence[Path], options: Sequence[str], jobs: int
) -> Generator[list[Ended], None, None]:
    """Yield, again and again, the processes that have ended since the last time, perhaps none.

    Close the generator to end all processes.

    Args:
        folders: the folders of the runs.
        options: the arguments of `job` after the folder.
        jobs: the number of processes at a time.
    """
    waiting = deque(folders)
    running: dict[Path, subprocess.Popen[bytes]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                folder = waiting.popleft()
                running[folder] = start(folder, options)
            time.sleep(TICK)
            ended = [Ended(folder, code) for folder, code in _polled(running) if code is not None]
            for each in ended:
                del running[each.folder]
            yield ended
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def start(folder: Path, options: Sequence[str], place: Path | None = None) -> "subprocess.Popen":
    """Start the process of a run; it ends when this one ends, however that happens.

    Args:
        folder: the folder of the run, to which its output is written, too.
        options: the arguments of `job` after the folder.
        place: the folder in which it works; None for that of this process.
    """
    command = [sys.executable, "-m", "spacy_psa.experiments.job", str(folder), *options]
    with open((place or Path()) / folder / OUTPUT, "ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=place,
            env={**os.environ, **ONE_THREAD},
        )


def _polled(
    running: "dict[Path, subprocess.Popen[bytes]]",
) -> list[tuple[Path, int | None]]:
    return [(folder, process.poll()) for folder, process in running.items()]
