"""Processes as tasks of Ray, on this machine or on a cluster with a shared folder."""

from collections import deque
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from spacy_psa.cluster import ray_cluster
from spacy_psa.laboratory.experiments.processes import JOB, Ended, start

RETRIES = 3
"""How often a process whose worker was killed is started again."""
TICK = 0.5
"""Seconds between two looks at the tasks."""


@ray.remote(num_cpus=1, max_retries=RETRIES)
def _wait(folder: Path, options: Sequence[str], place: Path, module: str) -> int:
    """Wait for a process, and give its exit code."""
    return int(start(folder, options, place, module).wait())


def run_on_ray(
    folders: Sequence[Path],
    options: Sequence[str],
    jobs: int,
    address: str | None = None,
    module: str = JOB,
) -> Generator[list[Ended], None, None]:
    """Yield, again and again, the processes that have ended since the last time, perhaps none.

    Close the generator to end all tasks.

    Args:
        folders: the folders of the processes; relative ones are below the current folder, which
            every machine of the cluster must have.
        options: the arguments of the module after the folder.
        jobs: the number of tasks at a time; -1 for all cores.
        address: the address of a Ray cluster; see `ray_cluster`.
        module: what the processes run.

    Raises:
        InputError: if there is no such cluster.
    """
    waiting, running = deque(folders), dict[Any, Path]()
    with ray_cluster(jobs, address):
        most = jobs if jobs > 0 else len(folders)
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    folder = waiting.popleft()
                    running[_wait.remote(folder, options, Path.cwd(), module)] = folder
                done, _ = ray.wait([*running], num_returns=len(running), timeout=TICK)
                yield [Ended(running.pop(task), _code(task)) for task in done]
        finally:
            for task in running:
                ray.cancel(task, force=True)


def _code(task: Any) -> int | None:
    try:
        return int(ray.get(task))
    except RayError:
        return None
