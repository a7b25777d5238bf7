"""Train a run of a plan in a bounded time, with a rate that comes down to 0 within it.

    python -m benchmarks.gpu.timed benchmarks/gpu/timed.toml parser 1 gpu-work/parser --seconds 450

PLAN, RUN and SEED name a training of a plan of `spacy-psa experiment`. Its config says how many
steps there are at most. After `PROBE` steps, the time of a step and that of an evaluation are
known. Then the number of steps becomes what the time suffices for, and the learning rate comes down
to 0 at its end: the schedule of the config, `warmup_linear.v1`, gets this number as its
`total_steps`. The first `PROBE` steps are a part of its warm-up, which does not depend on it. So
the same training can be had again without a bound in time, with `--steps`.

With `--beside N`, N trainings wait for each other, so that each measures its steps beside the
others.

The evaluations `EVALUATIONS` on development data choose the weights; the last one is at the end.
Test data is scored once. OUT gets `model-best` and `timed.json`: `run`, `seed`, `config` with the
steps that were made, `evaluations` [{`step`, `score`, `seconds`}], `best`, the step chosen,
`dev` and `test`, the score as a fraction of 1, `words` and `steps` a second, `seconds`, and where
the figures come from.
"""

import itertools
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training.loop import (
    create_evaluation_callback,
    create_train_batches,
    train_while_improving,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Config, fix_random_seed, warmup_linear

from benchmarks.gpu.times import synchronize
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import codecs_known
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.plan import read_plan
from spacy_psa.laboratory.experiments.runner import make_jobs
from spacy_psa.loading import use_device
from spacy_psa.scoring.provenance import provenance
from spacy_psa.scoring.result import read_examples
from spacy_psa.training.config import initialize

PROBE = 150
"""Steps after which the time of a step is known; the first `FIRST` of them do not count."""
FIRST = 50
EVALUATIONS = (0.7, 0.85, 1.0)
"""When development data is scored, in shares of the steps."""
GRACE = 25
"""Seconds at the end that are not planned with."""
SLOWER = 1.1
"""How many times as long as in the probe a step takes in the mean, beside other trainings."""
LONGEST_WAIT = 60
"""Seconds that a training waits for others to be ready."""


def training_of(plan: Path, run: str, seed: int, out: Path) -> tuple[Config, Path]:
    """The config of a training of a plan, and its test data.

    Raises:
        InputError: if there is no such plan, or no such final run in it.
    """
    read = read_plan(plan)
    runs = [replace(one, seeds=(seed,)) for one in read.runs if one.name == run and one.test]
    if not runs:
        raise InputError(f"{plan}: has no final run {run!r}")
    (job,) = make_jobs(replace(read, runs=tuple(runs)), out)
    test = runs[0].test
    assert test is not None
    return job.config, test


class Clock:
    """How many steps the time suffices for.

    Args:
        begun: the moment at which the process began, in seconds of `time.monotonic`.
        seconds: the time from then on; None for no bound.
        most: the steps of the config.
    """

    def __init__(self, begun: float, seconds: float | None, most: int):
        self.end = None if seconds is None else begun + seconds - GRACE
        self.most = most

    def steps(self, step_seconds: float, evaluation_seconds: float, done: int) -> int:
        """The number of steps in all, of which `done` are made."""
        if self.end is None:
            return self.most
        left = self.end - time.monotonic() - (len(EVALUATIONS) + 1) * evaluation_seconds
        return max(done + 1, min(self.most, done + int(left / step_seconds / SLOWER)))

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.end is not None and time.monotonic() > self.end


def train(
    nlp: Language, config: Config, clock: Clock, steps: int | None, test: Path
) -> dict[str, Any]:
    """Train, evaluate, and score the best weights on test data; they stay in the pipeline."""
    whole = config.interpolate()
    settings = registry.resolve(whole["training"], schema=ConfigSchemaTraining)
    optimizer, given = settings["optimizer"], whole["training"]["optimizer"]["learn_rate"]
    corpus, dev = resolve_dot_names(whole, [settings["train_corpus"], settings["dev_corpus"]])
    examples = list(dev(nlp))
    evaluate = create_evaluation_callback(nlp, lambda _: examples, settings["score_weights"])
    batches = create_train_batches(nlp, corpus, settings["batcher"], 0)
    loop = train_while_improving(
        nlp, optimizer, batches, evaluate=lambda: (0.0, {}), dropout=settings["dropout"],
        accumulate_gradient=1, patience=0, max_steps=0, eval_frequency=10**9, exclude=[],
        annotating_components=[], before_update=None,
    )  # fmt: skip
    total, due = steps or 10**9, [10**9]
    found: list[dict[str, Any]] = []
    begun = since = time.monotonic()
    words, best = 0, b""
    fix_random_seed(whole["training"]["seed"])
    for _, info, _ in loop:
        done = info["step"] + 1
        if done == FIRST:
            since, words = synchronize(), info["words"]
        if done == PROBE:
            step_seconds = (synchronize() - since) / (PROBE - FIRST)
            speed = {"steps": 1 / step_seconds, "words": (info["words"] - words) / (PROBE - FIRST)}
            before = time.monotonic()
            evaluate()
            total = steps or clock.steps(step_seconds, time.monotonic() - before, done)
            schedule = warmup_linear(given["initial_rate"], given["warmup_steps"], total)
            optimizer.schedules["learn_rate"] = itertools.islice(schedule, done + 1, None)
            due = sorted({max(done + 1, round(share * total)) for share in EVALUATIONS})
            print(f"{total} steps, {speed}", flush=True)
        if done in due or (clock.over and done > PROBE):
            score, _ = evaluate()
            seconds = round(time.monotonic() - begun, 1)
            found.append({"step": done, "score": score, "seconds": seconds})
            print(found[-1], flush=True)
            if score == max(row["score"] for row in found):
                best = nlp.to_bytes(exclude=["vocab"])
        if done >= total or (clock.over and done > PROBE):
            break
    nlp.from_bytes(best, exclude=["vocab"])
    top = max(found, key=lambda row: (row["score"], -row["step"]))
    weights = settings["score_weights"]
    metric = max(weights, key=lambda name: weights[name] or 0.0)
    return {
        "evaluations": found,
        "best": top["step"],
        "planned_steps": total,
        "steps": found[-1]["step"],
        "steps_per_second": speed["steps"],
        "words_per_step": speed["words"],
        "seconds": found[-1]["seconds"],
        "metric": metric,
        "dev": top["score"],
        "test": nlp.evaluate(read_examples(nlp, test))[metric],
    }


def wait_for_others(folder: Path, name: str, count: int) -> None:
    """Wait until `count` trainings have told in a folder that they are ready."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
    end = time.monotonic() + LONGEST_WAIT
    while len(list(folder.iterdir())) < count and time.monotonic() < end:
        time.sleep(0.1)


def main() -> None:
    options = script_parser(globals(), "PLAN.toml")
    options.add_argument("run", metavar="RUN", help="the name of a run of the plan")
    options.add_argument("seed", type=int, metavar="SEED")
    options.add_argument(
        "out", type=Path, metavar="OUT", help="folder for the model and the record"
    )
    options.add_argument("--seconds", type=float, help="time for all; by default, no bound")
    options.add_argument("--steps", type=int, help="the number of steps; by default, by the time")
    options.add_argument("--beside", type=int, default=1, help="trainings that begin together (1)")
    options.add_argument("--gpu-id", type=int, default=0, help="number of the GPU (0); -1: the CPU")
    begun, given = time.monotonic(), options.parse_args()
    use_device(given.gpu_id)
    config, test = training_of(given.plan, given.run, given.seed, given.out / "job")
    most = given.steps or config.interpolate()["training"]["max_steps"]
    nlp = initialize(given.plan, config, given.gpu_id)
    print(f"initialized after {time.monotonic() - begun:.1f} s", flush=True)
    wait_for_others(given.out.parent / "ready", given.out.name, given.beside)
    with codecs_known():
        results = train(nlp, config, Clock(begun, given.seconds, most), given.steps, test)
    data = [Path(path) for path in config["paths"].values() if path]
    training = nlp.config["training"]
    training["max_steps"] = results["planned_steps"]
    training["optimizer"]["learn_rate"]["total_steps"] = results["planned_steps"]
    record = {
        "run": given.run,
        "seed": given.seed,
        **results,
        "config": nlp.config,
        "source": provenance([*data, test]),
    }
    with atomic_path(given.out / "timed.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1), encoding="utf8")
    print({key: results[key] for key in ("dev", "test", "best")}, flush=True)
    nlp.to_disk(given.out / "model-best")


if __name__ == "__main__":
    main()
