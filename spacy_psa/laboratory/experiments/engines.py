"""The processes of a command, on this machine or on a Ray cluster."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.processes import JOB, run_locally

if TYPE_CHECKING:
    from spacy_psa.laboratory.experiments.runner import Engine


def make_engine(
    ray: bool, jobs: int, address: str | None, options: Sequence[str], module: str = JOB
) -> "Engine":
    """Make the function that runs a process for each of several folders.

    Args:
        ray: whether they run on Ray.
        jobs: how many run at a time; -1 for one per core.
        address: the address of a Ray cluster.
        options: the arguments of the module after the folder.
        module: the module that each process runs.

    Raises:
        InputError: if the options do not fit each other, nothing answers at the address, or Ray is
            not installed.
    """
    if jobs == 0 or jobs < -1:
        raise InputError(f"--jobs {jobs}: give a number of trainings, or -1 for one per core")
    if address is not None and not ray:
        raise InputError(f"--address {address}: give --engine ray, too")
    if not ray:
        return partial(run_locally, options=options, jobs=at_a_time(ray, jobs), module=module)
    try:
        from spacy_psa.cluster import check_address
        from spacy_psa.laboratory.experiments.ray_tasks import run_on_ray
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
