"""Processes of one thread each, some at a time; each has a folder, such as that of a run."""

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from pathlib import Path
from threading import Thread
from typing import NamedTuple

JOB = "spacy_psa.laboratory.experiments.job"
"""The module that trains one run of a plan."""
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
    folders: Sequence[Path], options: Sequence[str], jobs: int, module: str = JOB
) -> Generator[list[Ended], None, None]:
    """Yield, again and again, the processes that have ended since the last time, perhaps none.

    Close the generator to end all processes.

    Args:
        folders: the folders of the processes.
        options: the arguments of the module after the folder.
        jobs: the number of processes at a time.
        module: what the processes run.
    """
    waiting = deque(folders)
    running: dict[Path, subprocess.Popen[bytes]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                folder = waiting.popleft()
                running[folder] = start(folder, options, module=module)
            time.sleep(TICK)
            ended = [Ended(folder, code) for folder, code in _polled(running) if code is not None]
            for each in ended:
                del running[each.folder]
            yield ended
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def start(
    folder: Path, options: Sequence[str], place: Path | None = None, module: str = JOB
) -> "subprocess.Popen":
    """Start a process; if it calls `end_with_starter`, it ends when this one ends.

    Args:
        folder: the folder of the process, to which its output is written, too.
        options: the arguments of the module after the folder.
        place: the folder in which it works; None for that of this process.
        module: what the process runs, with the folder as its first argument.
    """
    command = [sys.executable, "-m", module, str(folder), *options]
    with open((place or Path()) / folder / OUTPUT, "ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=place,
            env={**os.environ, **ONE_THREAD},
        )


def end_with_starter() -> None:
    """Let this process end when the one that started it has ended, however that happens.

    Then its standard input is closed.
    """
    Thread(target=_end_without_input, daemon=True).start()


def _end_without_input() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock would be held when this process ends
        pass
    os._exit(1)


def _polled(
    running: "dict[Path, subprocess.Popen[bytes]]",
) -> list[tuple[Path, int | None]]:
    return [(folder, process.poll()) for folder, process in running.items()]
