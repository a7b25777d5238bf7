"""Train recognisers on samples of a corpus: our quickstart's config and spaCy's, for as long.

CORPUS is a folder with `train.spacy`, `dev.spacy`, `test.spacy` and `vectors`, as the project's
`convert` makes it. The seed draws a sample of the training sentences; smaller samples are parts of
larger ones. The systems:

- `ours`: the config that `spacy-psa init config` writes for the sample, trained to its end
- `cost`, `no_cost`: the same with a `recall_cost` of 3 or 0, if `ours` has the other
- `frozen`: the same as `ours`, for the frozen encoder of --base
- `efficiency`, `accuracy`: spaCy's `ner` with the config of `spacy init config --optimize ...`,
  trained for the processor time of `ours`. It is evaluated every 50 steps, or every 200 steps
  (spaCy's own setting) on samples that are too large for our config for few words
- `efficiency_ended`: `efficiency`, trained until the rule of its config ends it, after 1,600 steps
  without a better evaluation. It is evaluated every 200 steps

The time of evaluations does not count. Development data chooses the evaluation of a training; test
data is scored once. The config's own reader reads both: `ours` with all sentences of CoNLL-2003
reads whole documents, all others read sentences. With --vectors, all systems read the vectors of
the corpus, or of another pipeline. spaCy looks up vectors by the exact text, so it also gets those
of the corpus for capitalised words (`benchmarks.cased_vectors`).

The record benchmarks/small_data/results/CORPUS-SEED.json, or CORPUS-VECTORS-SEED.json with the name
of the folder of the vectors, has `samples`: {sentences: {`words` of the sample, and for each system
`dev` and `test` (`ents_p`, `ents_r`, `ents_f`), `steps` and `seconds` of the training, its `commit`
and `cpu`, and `base`}}. Finished trainings are kept in training/small_data. A record also has the
trainings of earlier commands.
"""

import random
from functools import partial
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.cli.init_config import init_config
from spacy.tokens import Doc
from thinc.api import Config

from benchmarks.cased_vectors import cased_vectors
from benchmarks.learning import learn, score
from benchmarks.record import read_record, write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.scoring.provenance import provenance
from spacy_psa.scoring.result import read_examples
from spacy_psa.training.recipes import FEW_WORDS, make_config

RESULTS = Path(__file__).parent / "results"
COSTS = {"cost": 3.0, "no_cost": 0.0}
"""The `recall_cost` of a system, instead of that of `ours`."""
OURS = ("ours", *COSTS, "frozen")
"""The systems of this package, which are trained to their ends."""
ENDED = "_ended"
"""The end of the name of a system that spaCy's own rule ends."""
SYSTEMS = (*OURS, "efficiency", "accuracy", f"efficiency{ENDED}")
DEFAULT = ("ours", "efficiency", "accuracy")
"""The systems to train without --systems."""
SIZES = (100, 300, 1000, 3000, 0)
"""Sentences of a sample; 0 for all."""
Samples = dict[str, dict[str, Any]]


def config_of(
    system: str,
    train: Path,
    dev: Path,
    vectors: Path | None,
    seed: int,
    every: int = 50,
    base: str | None = None,
) -> Config:
    """The config from the quickstart of a system.

    Args:
        every: the steps between evaluations of spaCy.
        base: the encoder of `frozen`.
    """
    if system in OURS:
        frozen, table = system == "frozen", str(vectors) if vectors else None
        config, _ = make_config(
            "ner", train, dev, table, base=base if frozen else None, frozen=frozen
        )
        if system in COSTS:
            config["components"]["ner"]["recall_cost"] = COSTS[system]
    else:
        optimize = system.removesuffix(ENDED)
        config = init_config(lang="en", pipeline=["ner"], optimize=optimize, gpu=False)
        embed = config["components"]["tok2vec"]["model"]["embed"]
        embed["include_static_vectors"] = vectors is not None
        config["initialize"]["vectors"] = str(vectors) if vectors else None
        if not system.endswith(ENDED):
            config["training"].update(eval_frequency=every, patience=0, max_steps=0)
        config["paths"]["train"], config["paths"]["dev"] = str(train), str(dev)
    config["system"]["seed"] = seed
    return config


def sample(docs: list[Doc], size: int, seed: int) -> list[Doc]:
    """Draw sentences in the order of the corpus; a smaller sample is a part of a larger one."""
    order = list(range(len(docs)))
    random.Random(seed).shuffle(order)
    return [docs[i] for i in sorted(order[: size or len(docs)])]


def run(
    name: str,
    corpus: Path,
    size: int,
    seed: int,
    vectors: Path | None,
    systems: list[str],
    base: str | None = None,
) -> dict[str, Any]:
    """Train the systems on one sample, if that is not done yet."""
    folder = Path("training", "small_data", name, str(size))
    folder.mkdir(parents=True, exist_ok=True)
    vocab = spacy.blank("en").vocab
    docs = sample([d for d in read_docbin(corpus / "train.spacy", vocab) if len(d)], size, seed)
    train = folder / "train.spacy"
    write_docbin(docs, train)
    row: dict[str, Any] = {"words": sum(map(len, docs))}
    for system in SYSTEMS:
        kept = folder / f"{system}.json"
        if system in systems and not kept.exists():
            table = vectors
            if vectors == corpus / "vectors" and system not in OURS:
                table = cased_vectors(vectors, Path("training/small_data", f"{corpus.name}-cased"))
            every = 50 if row["words"] < FEW_WORDS else 200
            config = config_of(system, train, corpus / "dev.spacy", table, seed, every, base)
            own_end = system in OURS or system.endswith(ENDED)
            limit = None if own_end else row["ours"]["seconds"]
            dev = partial(read_examples, path=corpus / "dev.spacy")
            nlp, scores, result = learn(config, dev, limit)
            result["dev"] = scores
            result["test"] = score(nlp, read_examples(nlp, corpus / "test.spacy"))
            source = provenance()
            result["commit"], result["cpu"] = source["commit"], source["machine"]["cpu"]
            if system == "frozen":
                result["base"] = base
            with atomic_path(kept) as path:
                srsly.write_json(path, result)
        if kept.exists():
            row[system] = srsly.read_json(kept)
            print(name, size, system, row[system], flush=True)
    return row


def joined(earlier: Samples, now: Samples) -> Samples:
    """The samples of a record and of a command, by size; the command overrides the record."""
    sizes = sorted({*earlier, *now}, key=lambda size: (size == "all", len(size), size))
    return {size: {**earlier.get(size, {}), **now.get(size, {})} for size in sizes}


def main() -> None:
    options = script_parser(globals())
    options.add_argument("corpus", type=Path, metavar="CORPUS", help="folder of a corpus")
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="sentences; 0 for all")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument(
        "--vectors", nargs="?", const="", metavar="FOLDER", help="of the corpus, or of a pipeline"
    )
    options.add_argument("--systems", nargs="+", choices=SYSTEMS, default=DEFAULT)
    options.add_argument("--base", metavar="FOLDER", help="the encoder of `frozen`")
    given = options.parse_args()
    corpus, seed = given.corpus, given.seed
    vectors = None if given.vectors is None else Path(given.vectors or corpus / "vectors")
    name = "-".join([corpus.name, *([vectors.name] if vectors else []), str(seed)])
    samples = {
        str(size or "all"): run(name, corpus, size, seed, vectors, given.systems, given.base)
        for size in given.sizes
    }
    parts = ["train", "dev", "test"]
    data = [corpus / f"{part}.spacy" for part in parts]
    result = RESULTS / f"{name}.json"
    earlier = read_record(result)["results"]["samples"] if result.exists() else {}
    results = {"samples": joined(earlier, samples)}
    write_record(result, "small_data", results, data=data, seed=seed)


if __name__ == "__main__":
    main()
