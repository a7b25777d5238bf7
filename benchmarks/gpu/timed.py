"""Train a run of a plan in a bounded time, with a rate that decreases to 0 within it.

PLAN, RUN and SEED name a training of a plan of `spacy-psa experiment`; its config has the maximum
number of steps. After `PROBE` steps, the time of a step and of an evaluation is known, and so is
the number of steps for the rest of the time. The learning rate decreases to 0 at their end: the
schedule of the config, `warmup_linear.v1`, gets this number as its `total_steps`. The first `PROBE`
steps are a part of its warm-up, which does not depend on it, so `--steps` can repeat the same
training without a bound in time.

Trainings that share the GPU wait for each other, so that each of them measures its steps while the
others run.

The evaluations `EVALUATIONS` on development data choose the weights; the last one is at the end.
Test data is scored once. OUT gets `model-best` and `timed.json`: `run`, `seed`, `config` with the
number of steps, `evaluations` [{`step`, `score`, `seconds`}], `best`, the chosen step, `dev` and
`test`, the score as a fraction of 1, `tests`, the scores of all `test*.spacy` in its folder,
`words` and `steps` per second, `seconds`, and the `source` of the figures.
"""

import itertools
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training.loop import (
    create_evaluation_callback,
    create_train_batches,
    train_while_improving,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Config, fix_random_seed, warmup_linear

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
"""Steps that measure the time of a step; the first `FIRST` of them do not count."""
FIRST = 50
EVALUATIONS = (0.7, 0.85, 1.0)
"""The evaluations on development data, in shares of the steps."""
GRACE = 25
"""Seconds at the end to spare."""
SLOWER = 1.1
"""The mean time of a step while other trainings run, as a multiple of that in the probe."""
LONGEST_WAIT = 60
"""Seconds that a training waits for others."""


def synchronize() -> float:
    """Wait until the GPU, if it is in use, has finished its work, and return the time."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.monotonic()


def training_of(plan: Path, run: str, seed: int, out: Path) -> tuple[Config, Path]:
    """The config of a training of a plan, and its test data.

    Raises:
        InputError: if the plan does not exist or does not have such a final run.
    """
    read = read_plan(plan)
    runs = [replace(each, seeds=(seed,)) for each in read.runs if each.name == run and each.test]
    if not runs:
        raise InputError(f"{plan}: has no final run {run!r}")
    (job,) = make_jobs(replace(read, runs=tuple(runs)), out)
    test = runs[0].test
    assert test is not None
    return job.config, test


class Clock:
    """Plans the steps for the `seconds` since a process began, with at most `most` steps."""

    def __init__(self, begun: float, seconds: float | None, most: int):
        self.end = None if seconds is None else begun + seconds - GRACE
        self.most = most

    def steps(self, step_seconds: float, evaluation_seconds: float, done: int) -> int:
        """The total number of steps, of which some are done."""
        if self.end is None:
            return self.most
        left = self.end - time.monotonic() - (len(EVALUATIONS) + 1) * evaluation_seconds
        return max(done + 1, min(self.most, done + int(left / step_seconds / SLOWER)))

    @property
    def over(self) -> bool:
        """Whether the time is over."""
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
    evaluations: list[dict[str, Any]] = []
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
            evaluations.append({"step": done, "score": score, "seconds": seconds})
            print(evaluations[-1], flush=True)
            if score == max(row["score"] for row in evaluations):
                best = nlp.to_bytes(exclude=["vocab"])
        if done >= total or (clock.over and done > PROBE):
            break
    nlp.from_bytes(best, exclude=["vocab"])
    top = max(evaluations, key=lambda row: (row["score"], -row["step"]))
    weights = settings["score_weights"]
    metric = max(weights, key=lambda name: weights[name] or 0.0)
    others = {path.stem: path for path in sorted(test.parent.glob("test*.spacy"))} | {
        test.stem: test
    }
    scores = {name: nlp.evaluate(read_examples(nlp, path))[metric] for name, path in others.items()}
    return {
        "evaluations": evaluations,
        "best": top["step"],
        "planned_steps": total,
        "steps": evaluations[-1]["step"],
        "steps_per_second": speed["steps"],
        "words_per_step": speed["words"],
        "seconds": evaluations[-1]["seconds"],
        "metric": metric,
        "dev": top["score"],
        "test": scores[test.stem],
        "tests": scores,
    }


def wait_for_others(folder: Path, name: str, count: int) -> None:
    """Wait until `count` trainings have a file in a folder, which means that they are ready."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
    end = time.monotonic() + LONGEST_WAIT
    while len(list(folder.iterdir())) < count and time.monotonic() < end:
        time.sleep(0.1)


def main() -> None:
    options = script_parser(globals(), "PLAN.toml")
    options.add_argument("run", metavar="RUN", help="the name of a run of the plan")
    options.add_argument("seed", type=int, metavar="SEED")
    options.add_argument("out", type=Path, metavar="OUT", help="folder for the results")
    options.add_argument("--seconds", type=float, help="total time (no bound)")
    options.add_argument("--steps", type=int, help="number of steps (by the time)")
    options.add_argument("--beside", type=int, default=1, help="trainings that start together (1)")
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
    record = {"run": given.run, "seed": given.seed, **results, "config": nlp.config}
    record["source"] = provenance([*data, test])
    with atomic_path(given.out / "timed.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1), encoding="utf8")
    print({key: results[key] for key in ("dev", "test", "best")}, flush=True)
    nlp.to_disk(given.out / "model-best")


if __name__ == "__main__":
    main()
