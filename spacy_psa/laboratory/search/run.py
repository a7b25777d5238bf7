"""A search by one process, or by several that share its storage.

`python -m spacy_psa.laboratory.search.run FOLDER PLAN` is one of several; PLAN is a `SearchPlan` as
JSON, and the output of the process is in FOLDER.
"""

import json
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from optuna.trial import FrozenTrial

from spacy_psa.child_processes import end_with_starter
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.processes import at_a_time, make_engine
from spacy_psa.laboratory.search.space import check_names, read_space
from spacy_psa.laboratory.search.study import Sampler, Search
from spacy_psa.laboratory.search.trial_logger import Report
from spacy_psa.loading import use_device
from spacy_psa.training.config import read_training_config

MODULE = "spacy_psa.laboratory.search.run"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class SearchPlan:
    """The settings of a search; see `Search`."""

    config: str
    overrides: list[str]
    """Options that override settings of the config, --SECTION.NAME VALUE."""
    space: str
    output: str
    """The file for the best config."""
    trials: int
    """The number of trainings of all processes."""
    storage: str | None
    sampler: Sampler
    seed: int
    startup: int
    gpu_id: int


def search(
    plan: SearchPlan,
    tell: Tell,
    ray: bool = False,
    jobs: int = 1,
    address: str | None = None,
    advance: Callable[[int], None] = lambda done: None,
    watch: Report | None = None,
) -> None:
    """Search, and write the best config after each trial that improves on it.

    There are `jobs` trainings at a time; -1 for one per core. `advance` is called with the number
    of trials that have ended, and `watch` after each evaluation of a training in this process.
    """
    output, several = Path(plan.output), ray or jobs != 1
    if output.is_dir():
        raise InputError(f"--output {output}: is a folder; use the name of a file")
    beside = output.with_name(f"{output.name}.{'journal' if several else 'db'}")
    storage = plan.storage or str(beside)
    if ray and not ("://" in storage or storage.endswith(".journal")):
        raise InputError(
            f"--storage {storage}: machines cannot share it; use NAME.journal, or the URL of a "
            "database"
        )
    plan = replace(plan, storage=storage)
    engine = make_engine(ray, jobs, address, [json.dumps(asdict(plan))], MODULE)
    settings = read_training_config(Path(plan.config), plan.overrides)
    space = read_space(Path(plan.space))
    check_names(space, settings, Path(plan.space))
    use_device(plan.gpu_id)
    run = Search(settings, space, storage, plan.sampler, plan.seed, plan.startup, plan.gpu_id)
    advance(run.done)
    before = run.best
    if several:
        left, most = plan.trials - run.begun, at_a_time(ray, jobs)
        printed = {trial.number for trial in run.ended}
        with closing(engine(_folders(output, left if most < 0 else min(most, left)))) as rounds:
            for _ in rounds:
                for ended in run.ended:
                    if ended.number not in printed:
                        printed.add(ended.number)
                        tell(describe(ended))
                advance(run.done)
    # Trials of processes that were killed are trained here.
    while (own := run.step(watch, limit=plan.trials)) is not None:
        advance(run.done)
        tell(describe(own))
        if run.best is not None and run.best != before:
            _write_best(run, output)
        before = run.best
    under_way = run.begun - run.done
    if run.best is None and not under_way:
        raise InputError(f"{storage}: no training was completed; set more --trials")
    if under_way:
        tell(f"{under_way} training(s) of other processes are still under way")
    if run.best is not None:
        _write_best(run, output)
        tell(f"Best of {run.done}: {describe(run.best)}\nWritten: {output}")


def describe(trial: FrozenTrial) -> str:
    """Describe a trial: its score or state, and its values."""
    state = trial.state.name.lower()
    score = "" if trial.value is None else f" {100 * trial.value:.2f}"
    values = ", ".join(f"{name} = {value}" for name, value in trial.params.items())
    reason = f": {trial.user_attrs['error']}" if "error" in trial.user_attrs else ""
    return f"trial {trial.number}: {state}{score}; {values}{reason}"


def _folders(output: Path, count: int) -> list[Path]:
    """Make a folder for the output of each process."""
    folders = [output.with_name(f"{output.name}.jobs") / str(i + 1) for i in range(count)]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def _write_best(run: Search, output: Path) -> None:
    assert run.best is not None
    with atomic_path(output) as temporary:
        run.settled(run.best.params).to_disk(temporary, interpolate=False)


def main(plan: str) -> None:
    """Search until all trials have begun, or until the process that started this one has ended."""
    end_with_starter()
    torch.set_num_threads(1)
    try:
        search(SearchPlan(**json.loads(plan)), print)
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(sys.argv[2])
