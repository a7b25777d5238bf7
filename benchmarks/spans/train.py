"""Train a system on nested spans for a time, score it and record it.

Run this in a folder where the project's `assets` and `convert` have made corpus/gum. SYSTEM is one
of benchmarks.spans.systems. The number of steps is counted from the processor time of its first
steps, so that all systems train for about --seconds of it, and the learning rate falls to 0 at the
end; without --seconds, the numbers are those of the config. Development data chooses one of 15
evaluations. The same command continues an interrupted training.

The record benchmarks/spans/results/SYSTEM-SEED.json, or SYSTEM-SHARE-SEED.json for a share of the
training documents in percent, has `steps`, `seconds` (of the training, with its evaluations),
`share`, `too_long` (the share of gold spans of the development data with more than 12 tokens, which
`ngram` cannot find) and the figures of benchmarks.spans.score: `dev`, `test`, `test2`,
`thresholds`, `speed` and `peak_bytes`. The model is in training/spans.
"""

import random
import resource
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.schemas import ConfigSchemaTraining
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches
from spacy.util import fix_random_seed, registry
from thinc.api import Config

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.spans.systems import KEY, LONGEST, SYSTEMS, config_of
from benchmarks.systems.train import log_to, run
from spacy_psa.corpora.docbin import read_docbin, write_docbin

SKIPPED, TIMED = 10, 60
"""The steps before those that are timed, and the number of those."""
EVALUATIONS = 15
PARTS = ("train", "dev", "test", "test2")


def seconds_per_step(config: Config) -> float:
    """Time the first updates of a training."""
    fix_random_seed(config["system"]["seed"])
    nlp = init_nlp(config)
    whole = nlp.config.interpolate()
    training = registry.resolve(whole["training"], schema=ConfigSchemaTraining)
    corpus = registry.resolve(whole["corpora"])["train"]
    batches = create_train_batches(nlp, corpus, training["batcher"], 0)
    started = 0.0
    for step, (_, batch) in enumerate(islice(batches, SKIPPED + TIMED)):
        if step == SKIPPED:
            started = time.process_time()
        names = training["annotating_components"]
        nlp.update(batch, sgd=training["optimizer"], annotates=names)
        training["optimizer"].step_schedules()
    return (time.process_time() - started) / TIMED


def set_steps(config: Config, steps: int) -> None:
    """Set the number of steps of a training, of its schedule and between its evaluations."""
    training = config["training"]
    training.update(max_steps=steps, eval_frequency=max(1, steps // EVALUATIONS), patience=0)
    rate = training["optimizer"]["learn_rate"]
    rate.update(total_steps=steps, warmup_steps=min(rate["warmup_steps"], steps // 10))


def take_apart(corpus: Path) -> Path:
    """Write a corpus again, as sentences without the name of their document."""
    apart = Path("training", "spans", "apart")
    apart.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        docs = list(read_docbin(corpus / f"{part}.spacy", spacy.blank("en").vocab))
        for doc in docs:
            doc.user_data.pop("document", None)
        write_docbin(docs, apart / f"{part}.spacy")
    return apart


def draw(source: Path, target: Path, percent: int, seed: int) -> None:
    """Write the sentences of a share of the documents, which is part of larger shares."""
    docs = read_docbin(source, spacy.blank("en").vocab)
    names = sorted({doc.user_data["document"] for doc in docs})
    random.Random(seed).shuffle(names)
    kept = set(names[: max(1, round(len(names) * percent / 100))])
    write_docbin((doc for doc in docs if doc.user_data["document"] in kept), target)


def too_long(path: Path) -> float:
    """The share of the spans in a file that are longer than `ngram` allows."""
    docs: Iterable[Any] = read_docbin(path, spacy.blank("en").vocab)
    lengths = [len(span) for doc in docs for span in doc.spans[KEY]]
    return sum(length > LONGEST for length in lengths) / len(lengths)


def train(system: str, corpus: Path, seed: int, seconds: float, percent: int) -> None:
    """Train, score and record a system."""
    name = f"{system}-{seed}" if percent == 100 else f"{system}-{percent}-{seed}"
    out = Path("training", "spans", name)
    out.mkdir(parents=True, exist_ok=True)
    read = take_apart(corpus) if system.startswith("frozen") else corpus
    data = read / "train.spacy"
    if percent < 100:
        data = out / "train.spacy"
        draw(corpus / "train.spacy", data, percent, seed)
    file = out / "config.cfg"
    if not file.exists():
        config = config_of(system, read, data, corpus / "vectors", seed)
        if seconds:
            set_steps(config, max(EVALUATIONS, round(seconds / seconds_per_step(config))))
        log_to(config, out / "log.jsonl")
        config.to_disk(file, interpolate=False)
    config = Config().from_disk(file, interpolate=False)
    kept = out / "seconds.json"
    before = srsly.read_json(kept) if kept.exists() else 0.0
    try:
        run("spacy_psa", "train", file, "--output", out, "--resume")
    finally:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        srsly.write_json(kept, before + used.ru_utime + used.ru_stime)
    run("benchmarks.spans.score", out / "model-best", read, "--output", out / "scores.json")
    results = {
        "steps": config["training"]["max_steps"],
        "seconds": srsly.read_json(kept),
        "share": percent / 100,
        "too_long": too_long(corpus / "dev.spacy"),
        **srsly.read_json(out / "scores.json"),
    }
    files = [corpus / f"{part}.spacy" for part in PARTS]
    write_record(name, "spans", results, data=files, seed=seed, config=config.interpolate())


def main() -> None:
    options = script_parser(globals())
    options.add_argument("system", choices=SYSTEMS, metavar="SYSTEM", help=" or ".join(SYSTEMS))
    options.add_argument("--corpus", type=Path, default=Path("corpus/gum"), help="(corpus/gum)")
    options.add_argument("--seed", type=int, default=1, help="seed of the training (1)")
    options.add_argument("--seconds", type=float, default=0.0, help="processor time to train for")
    options.add_argument("--percent", type=int, default=100, help="share of the documents (100)")
    given = options.parse_args()
    train(given.system, given.corpus, given.seed, given.seconds, given.percent)


if __name__ == "__main__":
    main()
