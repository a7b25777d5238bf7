"""Processes of one thread each, some at a time, on this machine or on Ray; each has a folder."""

import subprocess
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from spacy_psa.child_processes import child_command, child_environment
from spacy_psa.errors import InputError

JOB = "spacy_psa.laboratory.experiments.job"
"""The module that trains one run of a plan."""
OUTPUT = "output.txt"
TICK = 0.25
"""Seconds between two looks at the processes."""
RETRIES = 3
"""How often a process whose Ray worker was killed is started again."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


class Ended(NamedTuple):
    """A process that has ended."""

    folder: Path
    code: int | None
    """Its exit code, below 0 for a signal; None if nobody knows."""


Engine = Callable[[Sequence[Path]], Generator[list[Ended], None, None]]
"""Starts a process for each folder; yields, again and again, those that have ended since the last
time, perhaps none. Close the generator to end all processes."""


def make_engine(
    ray: bool, jobs: int, address: str | None, options: Sequence[str], module: str = JOB
) -> Engine:
    """Make the function that runs a process for each of several folders.

    There are `jobs` at a time; -1 for one per core. For the address of a Ray cluster see
    `ray_cluster`. Each process runs the module, whose arguments are the folder and the `options`.
    """
    if jobs == 0 or jobs < -1:
        raise InputError(f"--jobs {jobs}: set a number of trainings, or -1 for one per core")
    if address is not None and not ray:
        raise InputError(f"--address {address}: needs --engine ray")
    if not ray:
        return partial(run_locally, options=options, jobs=at_a_time(ray, jobs), module=module)
    try:
        from spacy_psa.cluster import check_address
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise InputError("--engine ray needs Ray: pip install 'spacy-psa[ray]'") from error
    if address is not None:
        check_address(address)
    return partial(run_on_ray, options=options, jobs=jobs, address=address, module=module)


def at_a_time(ray: bool, jobs: int) -> int:
    """Count the processes that run at a time; -1 for as many as a Ray cluster has cores."""
    from spacy_psa.scoring.provenance import machine

    return int(machine()["cores"]) if jobs < 0 and not ray else jobs


def run_locally(
    folders: Sequence[Path], options: Sequence[str], jobs: int, module: str = JOB
) -> Generator[list[Ended], None, None]:
    """The `Engine` of this machine; `make_engine` explains the arguments."""
    waiting = deque(folders)
    running: dict[Path, subprocess.Popen[bytes]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                folder = waiting.popleft()
                running[folder] = start(folder, options, module=module)
            time.sleep(TICK)
            codes = {folder: process.poll() for folder, process in running.items()}
            ended = [Ended(folder, code) for folder, code in codes.items() if code is not None]
            for each in ended:
                del running[each.folder]
            yield ended
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def run_on_ray(
    folders: Sequence[Path],
    options: Sequence[str],
    jobs: int,
    address: str | None = None,
    module: str = JOB,
) -> Generator[list[Ended], None, None]:
    """The `Engine` of a cluster, every machine of which must have the current folder."""
    import ray

    from spacy_psa.cluster import ray_cluster

    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_run)
    waiting, running = deque(folders), dict[Any, Path]()
    with ray_cluster(jobs, address):
        most = jobs if jobs > 0 else len(folders)
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    folder = waiting.popleft()
                    running[task.remote(folder, options, Path.cwd(), module)] = folder
                done, _ = ray.wait([*running], num_returns=len(running), timeout=TICK)
                yield [Ended(running.pop(each), _code(each)) for each in done]
        finally:
            for each in running:
                ray.cancel(each, force=True)


def _run(folder: Path, options: Sequence[str], place: Path, module: str) -> int:
    return int(start(folder, options, place, module).wait())


def _code(task: Any) -> int | None:
    import ray
    from ray.exceptions import RayError

    try:
        return int(ray.get(task))
    except RayError:
        return None


def start(
    folder: Path, options: Sequence[str], place: Path | None = None, module: str = JOB
) -> "subprocess.Popen":
    """Start a process; if it calls `end_with_starter`, it ends when this one ends.

    Its `folder` also gets its output, and it works in `place`; None for the folder of this process.
    """
    with open((place or Path()) / folder / OUTPUT, "ab") as output:
        return subprocess.Popen(
            child_command(module, str(folder), *options),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=place,
            env=child_environment(**ONE_THREAD),
        )
