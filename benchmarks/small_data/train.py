"""Train recognizers on samples of a corpus: our quickstart's config beside spaCy's, for as long.

CORPUS is a folder with `train.spacy`, `dev.spacy`, `test.spacy` and `vectors`, as the project's
`convert` makes it. A sample is drawn from the training sentences by the seed; smaller samples are
parts of larger ones. The systems:

- `ours`: the config that `spacy-psa init config` writes for the sample, trained to its end
- `cost`, `no_cost`: the same with a `recall_cost` of 3 or 0, where `ours` has the other
- `efficiency`, `accuracy`: spaCy's `ner` by the config of `spacy init config --optimize ...`,
  trained for the processor time that `ours` took, and evaluated every 50 steps; every 200, which
  is spaCy's own setting, on samples for which `init config` takes no config for few words

The time of evaluations does not count. Development data chooses among the evaluations of a
training; test data is scored once. The config's own reader reads both: `ours` with all sentences of
CoNLL-2003 reads whole documents, all others read sentences. With --vectors, all systems read the
vectors of the corpus. spaCy looks vectors up by the exact text, so it gets those of lower-cased
words for capitalised ones, too (`benchmarks.cased_vectors`).

The record benchmarks/small_data/results/CORPUS-SEED.json, or CORPUS-vectors-SEED.json, has
`samples`: {sentences: {`words`: of the sample, and for each system `dev` and `test` (`ents_p`,
`ents_r`, `ents_f`), `steps` and `seconds` of the training, its `commit` and `cpu`}}. What is done
is kept in training/small_data, and a record also has what earlier commands trained.
"""

import random
import time
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches, train_while_improving
from spacy.util import fix_random_seed, registry
from thinc.api import Config

from benchmarks.active.train import KEYS
from benchmarks.cased_vectors import cased_vectors
from benchmarks.record import read_record, write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.scoring.provenance import provenance
from spacy_psa.scoring.result import read_examples
from spacy_psa.training.recipes import FEW_WORDS, make_config

RESULTS = Path(__file__).parent / "results"
COSTS = {"cost": 3.0, "no_cost": 0.0}
"""The `recall_cost` of a system, in the place of that of `ours`."""
OURS = ("ours", *COSTS)
"""Those of this package, which are trained to their ends."""
SYSTEMS = (*OURS, "efficiency", "accuracy")
DEFAULT = ("ours", "efficiency", "accuracy")
"""Those that are trained unless --systems says otherwise."""
SIZES = (100, 300, 1000, 3000, 0)
"""Sentences of a sample; 0 for all."""
Samples = dict[str, dict[str, Any]]


def config_of(
    system: str, train: Path, dev: Path, vectors: Path | None, seed: int, every: int = 50
) -> Config:
    """The config that a user gets from the quickstart of a system.

    Args:
        system: one of `SYSTEMS`.
        train: the sample.
        dev: the development data.
        vectors: the word vectors, or None.
        seed: starts the weights.
        every: the steps from one evaluation of spaCy's systems to the next.
    """
    if system in OURS:
        config, _ = make_config("ner", train, dev, str(vectors) if vectors else None)
        if system in COSTS:
            config["components"]["ner"]["recall_cost"] = COSTS[system]
    else:
        config = init_config(lang="en", pipeline=["ner"], optimize=system, gpu=False)
        embed = config["components"]["tok2vec"]["model"]["embed"]
        embed["include_static_vectors"] = vectors is not None
        config["initialize"]["vectors"] = str(vectors) if vectors else None
        config["training"].update(eval_frequency=every, patience=0, max_steps=0)
        config["paths"]["train"], config["paths"]["dev"] = str(train), str(dev)
    config["system"]["seed"] = seed
    return config


def score(nlp: Language, examples: list[Example]) -> dict[str, float]:
    """Precision, recall and F1 of a pipeline on examples."""
    found = nlp.evaluate(examples, batch_size=256)
    return {key: found[key] or 0.0 for key in KEYS}


def learn(config: Config, limit: float | None) -> tuple[Language, dict[str, Any], dict[str, Any]]:
    """Train as `spacy train` does, for at most `limit` seconds of processor time.

    Returns:
        The pipeline with the weights of its best evaluation, the scores of that evaluation, and the
        `steps` and `seconds` of the training.
    """
    fix_random_seed(config["system"]["seed"])
    nlp = init_nlp(config)
    whole = nlp.config.interpolate()
    training = registry.resolve(whole["training"], schema=ConfigSchemaTraining)
    corpus = registry.resolve(whole["corpora"])["train"]
    dev = read_examples(nlp, Path(whole["paths"]["dev"]))
    evaluating = 0.0

    def evaluate() -> tuple[float, dict[str, float]]:
        nonlocal evaluating
        started = time.process_time()
        found = score(nlp, dev)
        evaluating += time.process_time() - started
        return found["ents_f"], found

    steps = train_while_improving(
        nlp,
        training["optimizer"],
        create_train_batches(nlp, corpus, training["batcher"], training["max_epochs"]),
        evaluate,
        dropout=training["dropout"],
        eval_frequency=training["eval_frequency"],
        accumulate_gradient=1,
        patience=training["patience"],
        max_steps=training["max_steps"],
        exclude=[],
        annotating_components=[],
        before_update=None,
    )
    best, scores, seconds = b"", {}, 0.0
    started = time.process_time()
    for _, info, is_best in steps:
        if is_best:
            best, scores = nlp.to_bytes(exclude=["vocab", "tokenizer"]), info["other_scores"]
        seconds = time.process_time() - started - evaluating
        if limit is not None and seconds > limit and scores:
            break
    nlp.from_bytes(best, exclude=["vocab", "tokenizer"])
    return nlp, scores, {"steps": info["step"], "seconds": round(seconds, 1)}


def sample(docs: list[Doc], size: int, seed: int) -> list[Doc]:
    """Draw sentences, in the order of the corpus; a smaller sample is a part of a larger one."""
    order = list(range(len(docs)))
    random.Random(seed).shuffle(order)
    return [docs[i] for i in sorted(order[: size or len(docs)])]


def run(corpus: Path, size: int, seed: int, vectors: bool, systems: list[str]) -> dict[str, Any]:
    """Train the systems on one sample, where that is not done yet."""
    name = f"{corpus.name}{'-vectors' * vectors}"
    folder = Path("training", "small_data", f"{name}-{seed}", str(size))
    folder.mkdir(parents=True, exist_ok=True)
    vocab = spacy.blank("en").vocab
    docs = sample([d for d in read_docbin(corpus / "train.spacy", vocab) if len(d)], size, seed)
    train = folder / "train.spacy"
    write_docbin(docs, train)
    row: dict[str, Any] = {"words": sum(map(len, docs))}
    for system in SYSTEMS:
        kept = folder / f"{system}.json"
        if system in systems and not kept.exists():
            given = corpus / "vectors" if vectors else None
            if given is not None and system not in OURS:
                given = cased_vectors(given, Path("training/small_data", f"{name}-cased"))
            every = 50 if row["words"] < FEW_WORDS else 200
            config = config_of(system, train, corpus / "dev.spacy", given, seed, every)
            limit = None if system in OURS else row["ours"]["seconds"]
            nlp, scores, found = learn(config, limit)
            found["dev"] = {key: scores[key] for key in KEYS}
            found["test"] = score(nlp, read_examples(nlp, corpus / "test.spacy"))
            source = provenance()
            found["commit"], found["cpu"] = source["commit"], source["machine"]["cpu"]
            with atomic_path(kept) as path:
                srsly.write_json(path, found)
        if kept.exists():
            row[system] = srsly.read_json(kept)
            print(name, seed, size, system, row[system], flush=True)
    return row


def joined(earlier: Samples, now: Samples) -> Samples:
    """The samples of a record and of a command, by size; what is in both is that of the command."""
    sizes = sorted({*earlier, *now}, key=lambda size: (size == "all", len(size), size))
    return {size: {**earlier.get(size, {}), **now.get(size, {})} for size in sizes}


def main() -> None:
    options = script_parser("benchmarks.small_data.train", __doc__)
    options.add_argument("corpus", type=Path, metavar="CORPUS", help="folder of a corpus")
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="sentences; 0 for all")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--vectors", action="store_true", help="with the vectors of the corpus")
    options.add_argument("--systems", nargs="+", choices=SYSTEMS, default=DEFAULT)
    given = options.parse_args()
    samples = {
        str(size or "all"): run(given.corpus, size, given.seed, given.vectors, given.systems)
        for size in given.sizes
    }
    name = f"{given.corpus.name}{'-vectors' * given.vectors}-{given.seed}"
    parts = ["train", "dev", "test"]
    data = [given.corpus / f"{part}.spacy" for part in parts]
    result = RESULTS / f"{name}.json"
    earlier = read_record(result)["results"]["samples"] if result.exists() else {}
    found = {"samples": joined(earlier, samples)}
    write_record(result, "small_data", found, data=data, seed=given.seed)


if __name__ == "__main__":
    main()
