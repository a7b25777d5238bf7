"""What a command with `--engine`, `--jobs` and `--address` starts its processes on."""

from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.processes import JOB, run_locally

if TYPE_CHECKING:
    from spacy_psa.laboratory.experiments.runner import Engine as Starter


class Engine(str, Enum):
    """What the processes run on."""

    local = "local"
    ray = "ray"


Jobs = Annotated[int, typer.Option(help="Number of trainings at a time; -1 for one per core.")]
TrainingEngine = Annotated[
    Engine, typer.Option(help="local, or ray for tasks on this machine or a cluster.")
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Address of a Ray cluster, or auto. Without one, that of RAY_ADDRESS is taken, or Ray "
        "is started on this machine."
    ),
]


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
        return partial(run_locally, options=options, jobs=at_a_time(engine, jobs), module=module)
    try:
        from spacy_psa.laboratory.experiments.ray_tasks import run_on_ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise InputError("--engine ray needs Ray: pip install 'spacy-psa[ray]'") from error
    return partial(run_on_ray, options=options, jobs=jobs, address=address, module=module)


def at_a_time(engine: Engine, jobs: int) -> int:
    """Count the processes that run at a time, as far as this machine knows.

    Args:
        engine: what they run on.
        jobs: how many were asked for; -1 for one per core.

    Returns:
        Their number. -1 if they are as many as a Ray cluster has cores.
    """
    from spacy_psa.scoring.provenance import machine

    return int(machine()["cores"]) if jobs < 0 and engine is Engine.local else jobs
