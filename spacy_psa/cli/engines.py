"""What a command with `--engine`, `--jobs` and `--address` starts its processes on."""

from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from spacy_psa.errors import InputError
from spacy_psa.experiments.processes import JOB, run_locally

if TYPE_CHECKING:
    from spacy_psa.experiments.runner import Engine as Starter


class Engine(str, Enum):
    """What the processes run on."""

    local = "local"
    ray = "ray"


def make_starter(
    engine: Engine, jobs: int, address: str | None, options: Sequence[str], module: str = JOB
) -> "Starter":
    """Give the function that starts the processes of folders.

    Args:
        engine: what they run on.
        jobs: how many run at a time; -1 for one per core.
        address: the address of a Ray cluster.
        options: the arguments of the module after the folder.
        module: what the processes run.

    Raises:
        InputError: if the options do not fit each other, and if Ray is not installed.
    """
    if jobs == 0 or jobs < -1:
        raise InputError(f"--jobs {jobs}: give a number of trainings, or -1 for one per core")
    if address is not None and engine is Engine.local:
        raise InputError(f"--address {address}: give --engine ray, too")
    if engine is Engine.local:
        count = jobs if jobs > 0 else cores()
        return partial(run_locally, options=options, jobs=count, module=module)
    try:
        from spacy_psa.experiments.ray_tasks import run_on_ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise InputError("--engine ray needs Ray: pip install 'spacy-psa[ray]'") from error
    return partial(run_on_ray, options=options, jobs=jobs, address=address, module=module)


def cores() -> int:
    """Count the cores that this process may use."""
    from spacy_psa.scoring.provenance import machine

    return int(machine()["cores"])
