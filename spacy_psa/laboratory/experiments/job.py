"""One training of a plan, in a process of its own.

    python -m spacy_psa.laboratory.experiments.job FOLDER GPU SAVE_EVERY

FOLDER has the config of the training in `config.cfg` and its record, whose state is "running". The
process trains, continues from a checkpoint if there is one, scores the best model and writes the
record. It ends at once when its standard input is closed, as it is when the process that started it
has ended.
"""

import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_psa.child_processes import end_with_starter
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.record import (
    FILE,
    Evaluation,
    Record,
    Scored,
    read_record,
    write_record,
)

if TYPE_CHECKING:
    from spacy.language import Language

CONFIG = "config.cfg"
LOG = "log.jsonl"


def run_job(folder: Path, gpu_id: int = -1, save_every: int = 0) -> Record:
    """Train, score and record a run in its folder; an error makes it a failed one.

    Further checkpoints than those at evaluations are made after each `save_every` steps; 0 for
    none.
    """
    from spacy_psa.scoring.provenance import machine, versions

    record = read_record(folder / FILE)
    record = record.model_copy(update={"machine": machine(), "versions": versions()})
    try:
        results = _train_and_score(record, folder, gpu_id, save_every)
        record = record.model_copy(update={**results, "state": "finished", "reason": None})
    except Exception as error:  # whatever a training raises is the reason of this run
        reason = " ".join(str(error).split()) or "no message"
        if not isinstance(error, InputError):
            traceback.print_exc()
            reason = f"{type(error).__name__}: {reason}"
        changes = {"state": "failed", "reason": reason}
        if record.state == "finished":  # its scores on development data stay
            advice = f"to train it again, remove {folder}"
            changes = {"reason": f"it cannot be scored on test data ({reason}); {advice}"}
        record = record.model_copy(update=changes)
    write_record(record, folder / FILE)
    return record


def _train_and_score(record: Record, folder: Path, gpu_id: int, save_every: int) -> dict[str, Any]:
    from spacy.util import load_config

    from spacy_psa.loading import load_pipeline, use_device
    from spacy_psa.scoring.result import best, read_log
    from spacy_psa.training.checkpoint import Checkpoints
    from spacy_psa.training.config import initialize
    from spacy_psa.training.loop import train

    use_device(gpu_id)
    path, checkpoints = folder / CONFIG, Checkpoints(folder)
    begun = checkpoints.finished is not None or checkpoints.load() is not None
    started = time.perf_counter()
    nlp = initialize(path, load_config(path, interpolate=False), gpu_id)
    train(nlp, folder, resume=True, save_every=save_every, use_gpu=gpu_id)
    seconds = record.seconds if begun else round(time.perf_counter() - started, 1)
    log = read_log(folder / LOG)
    top = best(log)
    nlp = load_pipeline(str(folder / "model-best"), gpu_id)
    dev = _dev_corpus(nlp)
    tested = None
    if record.test is not None:
        tested = score(
            nlp, {**dev, "path": record.test, **({"limit": 0} if "limit" in dev else {})}
        )
    return {
        "seconds": seconds,
        "evaluations": [Evaluation.model_validate(row) for row in log],
        "best": None if top is None else Evaluation.model_validate(top),
        "dev": score(nlp, dev),
        "tested": tested,
    }


def _dev_corpus(nlp: "Language") -> dict[str, Any]:
    from spacy.util import dot_to_object

    config = nlp.config.interpolate()
    section: dict[str, Any] = dot_to_object(config, config["training"]["dev_corpus"])
    return section


def score(nlp: "Language", corpus: dict[str, Any]) -> Scored:
    """Score a pipeline on a corpus, which is the block of a config that makes its reader."""
    from spacy.scorer import Scorer
    from spacy.util import registry

    from spacy_psa.laboratory.analyses.counted_scores import counted_scores

    examples = list(registry.resolve({"corpus": corpus})["corpus"](nlp))
    path = str(corpus.get("path"))
    if not examples:
        raise InputError(f"{path}: no documents in it; use annotated documents")
    docs = nlp.pipe(example.predicted for example in examples)
    for example, doc in zip(examples, docs, strict=True):
        example.predicted = doc
    scores = Scorer(nlp=nlp).score(examples)
    kept = {key: value for key, value in scores.items() if value is not None}
    counts = {name: count(examples) for name, count in counted_scores(nlp).items()}
    return Scored(
        path=path,
        scores=kept,
        sentences={name: [(*each,) for each in counted] for name, counted in counts.items()},
    )


def main(folder: str, gpu_id: str, save_every: str) -> None:
    """Run the job of a folder, and print its reason or "finished"."""
    import torch

    end_with_starter()
    torch.set_num_threads(1)
    record = run_job(Path(folder), int(gpu_id), int(save_every))
    print(record.reason or "finished")


if __name__ == "__main__":
    main(*sys.argv[1:])
