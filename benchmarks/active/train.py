"""Train recognizers on what a simulated annotator was asked, round after round, and record them.

The annotator knows the entities of CoNLL-2003's training sentences. A round asks for more of them,
trains both systems from new weights on all that is known, and scores them on development and test
data. Run this in a folder whose `assets` and `convert` have made the corpus.

STRATEGY is one of:

- `random`: random sentences, annotated in full.
- `entropy`: the sentences with the most entropy a token, annotated in full.
- `spans`: the same sentences, but only tokens that the model is unsure of are asked for. Each
  answer is evidence for the rest of the sentence; what was not asked for stays missing.
- `all`: all sentences in one round, to compare with.

The first round is the same for all: random sentences in full. The systems: `crf_ner`
(benchmarks/active/crf_ner.cfg) asks and learns; `spacy` (spaCy's `ner`, its efficiency config with
the same vectors) learns from the same answers, as far as it can use them.

The record benchmarks/active/results/STRATEGY-SEED.json has `sure` and `rounds`, each with `share`
(asked for, of all tokens), `sentences`, `tokens_seen`, `tokens_decided`, `decisions`, and for each
system `dev` and `test` (`ents_p`, `ents_r`, `ents_f`), `steps` and `seconds` of its training. What
is done is kept in training/active, so that the command goes on where it was. A record also has what
was trained by earlier commands.
"""

import math
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

from benchmarks.active.annotator import Annotator, ask_unsure, doubts
from benchmarks.cased_vectors import cased_vectors
from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.sentences import unannotated

HERE = Path(__file__).parent
RESULTS = HERE / "results"
STRATEGIES = ("random", "entropy", "spans", "all")
SYSTEMS = ("crf_ner", "spacy")
SHARES = (0.025, 0.05, 0.1, 0.17, 0.25, 0.35)
SURE = 0.99
"""A token whose best tag has this probability is not asked for."""
PASSES = 8
"""Passes over all sentences; over a share of them, PASSES / sqrt(share)."""
BATCH_WORDS = 250
KEYS = ("ents_p", "ents_r", "ents_f")


def config_of(system: str, data: Path, train: Path, steps: int, seed: int) -> Config:
    """The config of a system for a number of steps."""
    if system == "spacy":
        config = init_config(lang="en", pipeline=["ner"], optimize="efficiency", gpu=False)
        config["components"]["tok2vec"]["model"]["embed"]["include_static_vectors"] = True
        config["training"]["batcher"]["size"] = BATCH_WORDS
    else:
        config = Config().from_disk(HERE / "crf_ner.cfg", interpolate=False)
        rate = config["training"]["optimizer"]["learn_rate"]
        rate["total_steps"], rate["warmup_steps"] = steps, min(300, steps // 10)
    config["training"].update(max_steps=steps, eval_frequency=math.ceil(steps / 4), patience=0)
    vectors = data / "vectors"
    if system == "spacy":
        vectors = cased_vectors(vectors, Path("training/active/cased-vectors"))
    config["initialize"]["vectors"] = str(vectors)
    config["paths"]["train"], config["paths"]["dev"] = str(train), str(data / "dev.spacy")
    config["system"]["seed"] = seed
    return config


def score(nlp: Language, docs: list[Doc]) -> dict[str, float]:
    """Precision, recall and F1 of a pipeline on docs."""
    examples = [Example(unannotated(doc, nlp.vocab, sentences=False), doc) for doc in docs]
    found = nlp.evaluate(examples, batch_size=256)
    return {key: found[key] or 0.0 for key in KEYS}


def train(config: Config, dev: list[Doc]) -> Language:
    """Train as `spacy train` does, and give the weights of the best of its evaluations."""
    fix_random_seed(config["system"]["seed"])
    nlp = init_nlp(config)
    settings = registry.resolve(nlp.config.interpolate()["training"], schema=ConfigSchemaTraining)
    corpus = registry.resolve(nlp.config.interpolate()["corpora"])["train"]

    def evaluate() -> tuple[float, dict[str, float]]:
        found = score(nlp, dev)
        return found["ents_f"], found

    steps = train_while_improving(
        nlp,
        settings["optimizer"],
        create_train_batches(nlp, corpus, settings["batcher"], max_epochs=0),
        evaluate,
        dropout=settings["dropout"],
        eval_frequency=settings["eval_frequency"],
        accumulate_gradient=1,
        patience=0,
        max_steps=settings["max_steps"],
        exclude=[],
        annotating_components=[],
        before_update=None,
    )
    best = b""
    for _, _, is_best in steps:
        if is_best:
            best = nlp.to_bytes(exclude=["vocab", "tokenizer"])
    return nlp.from_bytes(best, exclude=["vocab", "tokenizer"])


def ask(
    annotator: Annotator, strategy: str, share: float, model: Language | None, seed: int
) -> None:
    """Ask the annotator until a share of all tokens has been seen."""
    gold = annotator.gold
    left = [i for i in range(len(gold)) if i not in annotator.seen]
    draw = random.Random(f"{seed} {share}")
    draw.shuffle(left)
    pipe: Any = model.get_pipe("ner") if model and strategy in ("entropy", "spans") else None
    if pipe:
        doubt = dict(zip(left, doubts([gold[i] for i in left], pipe), strict=True))
        left.sort(key=lambda i: -doubt[i])
    wanted = share * sum(map(len, gold))
    for i in left:
        if annotator.tokens_seen >= wanted:
            break
        if pipe and strategy == "spans":
            ask_unsure(annotator, i, pipe, SURE)
        else:
            annotator.annotate(i)


def play(strategy: str, seed: int, data: Path, work: Path, systems: list[str]) -> None:
    """Go through the rounds of a strategy, and write the record after each."""
    vocab = spacy.blank("en").vocab
    gold = [doc for doc in read_docbin(data / "train.spacy", vocab) if len(doc)]
    held = {part: read_docbin(data / f"{part}.spacy", vocab) for part in ("dev", "test")}
    annotator, model, rounds = Annotator(gold), None, []
    for number, share in enumerate((1.0,) if strategy == "all" else SHARES):
        folder = work / f"{number}"
        folder.mkdir(parents=True, exist_ok=True)
        ask(annotator, strategy, share, model, seed)
        known = annotator.docs()
        asked = folder / "train.spacy"
        write_docbin(known, asked)
        row: dict[str, Any] = {
            "share": share,
            "sentences": len(known),
            "tokens_seen": annotator.tokens_seen,
            "tokens_decided": annotator.tokens_decided,
            "decisions": annotator.decisions,
        }
        words = share * sum(map(len, gold))
        steps = max(50, round(PASSES / math.sqrt(share) * words / BATCH_WORDS))
        for system in SYSTEMS:
            kept, saved = folder / f"{system}.json", folder / system
            if system in systems and not kept.exists():
                started = time.perf_counter()
                nlp = train(config_of(system, data, asked, steps, seed), held["dev"])
                found: dict[str, Any] = {
                    "steps": steps,
                    "seconds": round(time.perf_counter() - started, 1),
                    **{part: score(nlp, docs) for part, docs in held.items()},
                }
                if system == "crf_ner":
                    nlp.to_disk(saved)
                with atomic_path(kept) as path:
                    srsly.write_json(path, found)
            if kept.exists():
                row[system] = srsly.read_json(kept)
                print(strategy, seed, share, system, row["decisions"], row[system], flush=True)
        rounds.append(row)
        saved = folder / "crf_ner"
        model = spacy.load(saved) if saved.exists() else None
    files = [data / f"{part}.spacy" for part in ("train", "dev", "test")]
    results = {"sure": SURE, "rounds": rounds}
    write_record(RESULTS / f"{strategy}-{seed}.json", "active", results, data=files, seed=seed)


def main() -> None:
    options = script_parser("benchmarks.active.train", __doc__)
    options.add_argument(
        "strategy", choices=STRATEGIES, metavar="STRATEGY", help=", ".join(STRATEGIES)
    )
    options.add_argument(
        "--seed", type=int, default=1, help="of the first round, weights and batches (1)"
    )
    options.add_argument("--system", choices=SYSTEMS, action="append", help="train only this one")
    given = options.parse_args()
    work = Path("training", "active", f"{given.strategy}-{given.seed}")
    systems = given.system or list(SYSTEMS)
    play(given.strategy, given.seed, Path("corpus", "conll2003"), work, systems)


if __name__ == "__main__":
    main()
