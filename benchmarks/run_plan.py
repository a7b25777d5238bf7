"""Train the runs of a plan of an experiment, and record their scores.

    python -m benchmarks.run_plan benchmarks/ablations/wei2020.toml --jobs 2

The plan has the format of `spacy-psa experiment`. All runs are trained with the first seed, then
with the second, and so on. Their models are in training/EXPERIMENT/PLAN.

The record benchmarks/EXPERIMENT/results/PLAN.json has `runs`: {run: {seed: {`dev`, and `test` of a
final run: the score as a fraction of 1, `step`: the evaluation that development data chose,
`seconds` of the training, `commit`}}}. Recorded trainings are not repeated, so the same command
continues an interrupted plan. An interrupted training continues from its last checkpoint; use
`--save-every` for more checkpoints.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.record import read_record, write_record
from benchmarks.script import script_parser
from spacy_psa.laboratory.experiments.plan import Plan, Run, read_plan
from spacy_psa.laboratory.experiments.processes import run_locally
from spacy_psa.laboratory.experiments.record import Record
from spacy_psa.laboratory.experiments.runner import make_jobs, run_jobs

NOTE = "The commit of each training is with its scores; that of the record is of the last one."

Scores = dict[str, dict[str, dict[str, Any]]]


def left(plan: Plan, done: Scores) -> Plan:
    """The trainings of a plan without a result, as a run for each, the first seeds first."""
    seeds = sorted({seed for run in plan.runs for seed in run.seeds})

    def missing(run: Run, seed: int) -> bool:
        scores = done.get(run.name, {}).get(str(seed), {})
        return ("dev" if run.test is None else "test") not in scores

    def runs() -> Iterator[Run]:
        for seed in seeds:
            for run in plan.runs:
                if seed in run.seeds and missing(run, seed):
                    yield replace(run, seeds=(seed,))

    return replace(plan, runs=tuple(runs()))


def add(done: Scores, record: Record) -> bool:
    """Add the scores of a training if it is finished."""
    if record.state != "finished" or record.dev is None or record.best is None:
        print(f"{record.name}: {record.state}: {record.reason}", flush=True)
        return False
    parts = {"dev": record.dev, "test": record.tested}
    scores = {name: part.scores[record.metric] for name, part in parts.items() if part}
    rest = {"step": record.best.step, "seconds": record.seconds, "commit": record.commit}
    done.setdefault(record.run, {})[str(record.seed)] = {**scores, **rest}
    print(f"{record.name}: {scores}", flush=True)
    return True


def train(path: Path, at_a_time: int, save_every: int = 0) -> None:
    """Train all runs without a result, and write the record after each training."""
    plan, experiment = read_plan(path), path.resolve().parent
    result = experiment / "results" / f"{plan.name}.json"
    out = Path("training", experiment.name, plan.name)
    scores: Scores = read_record(result)["results"]["runs"] if result.exists() else {}
    jobs = make_jobs(left(plan, scores), out)
    if not jobs:
        print(f"{result}: has all trainings of the plan")
        return
    starter = partial(run_locally, options=["-1", str(save_every)], jobs=at_a_time)
    files = [Path(file) for file in jobs[0].record.data]
    done = [job.earlier for job in jobs if job.done and job.earlier]
    with closing(run_jobs(jobs, starter, out)) as rounds:
        for records in chain([done], rounds):
            if sum(add(scores, record) for record in records):
                write_record(result, experiment.name, {"runs": scores}, data=files, note=NOTE)


def main() -> None:
    options = script_parser(globals())
    options.add_argument("plan", type=Path, metavar="PLAN.toml", help="plan of an experiment")
    options.add_argument("--jobs", type=int, default=1, help="trainings at a time (1)")
    note = "steps between checkpoints, in addition to those at evaluations"
    options.add_argument("--save-every", type=int, default=0, metavar="STEPS", help=note)
    given = options.parse_args()
    train(given.plan, given.jobs, given.save_every)


if __name__ == "__main__":
    main()
