"""Train recognisers on the answers of a simulated annotator, round after round, and record them.

The annotator knows the entities of CoNLL-2003's training sentences. Each round asks for more of
them, trains both systems from new weights on all answers, and scores them on development and test
data. Run this in a folder where the project's `assets` and `convert` have made the corpus.

STRATEGY is one of:

- `random`: random sentences, annotated in full.
- `entropy`: the sentences with the most entropy a token, annotated in full.
- `spans`: the same sentences, but it only asks for tokens that the model is unsure of. Each answer
  is evidence for the rest of the sentence. All other tokens stay missing.
- `all`: all sentences in one round, for comparison.

The first round is the same for all: random sentences in full. The system `crf_ner`
(benchmarks/active/crf_ner.cfg) asks and learns. The system `spacy` (spaCy's `ner`, its efficiency
config with the same vectors) learns from the same answers, as far as it can use them.

The record benchmarks/active/results/STRATEGY-SEED.json has `sure` and `rounds`, each with `share`
(asked for, of all tokens), `sentences`, `tokens_seen`, `tokens_decided`, `decisions`, and for each
system `dev` and `test` (`ents_p`, `ents_r`, `ents_f`), `steps` and `seconds` of its training.
Finished trainings are kept in training/active, so the same command continues an interrupted run. A
record also has the trainings of earlier commands.
"""

import math
import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Config

from benchmarks.active.annotator import Annotator, ask_unsure, doubts
from benchmarks.cased_vectors import cased_vectors
from benchmarks.learning import learn, score
from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.sentences import unannotated

STRATEGIES = ("random", "entropy", "spans", "all")
SYSTEMS = ("crf_ner", "spacy")
SHARES = (0.025, 0.05, 0.1, 0.17, 0.25, 0.35)
SURE = 0.99
"""A token is only asked for if its best tag has a lower probability."""
PASSES = 8
"""Passes over all sentences; over a share of them, PASSES / sqrt(share)."""
BATCH_WORDS = 250


def config_of(system: str, data: Path, train: Path, steps: int, seed: int) -> Config:
    """The config of a system for a number of steps."""
    if system == "spacy":
        config = init_config(lang="en", pipeline=["ner"], optimize="efficiency", gpu=False)
        config["components"]["tok2vec"]["model"]["embed"]["include_static_vectors"] = True
        config["training"]["batcher"]["size"] = BATCH_WORDS
    else:
        config = Config().from_disk(Path(__file__).with_name("crf_ner.cfg"), interpolate=False)
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


def examples(nlp: Language, docs: list[Doc]) -> list[Example]:
    """Examples without annotation on the predicted side."""
    return [Example(unannotated(doc, nlp.vocab, sentences=False), doc) for doc in docs]


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
    """Play the rounds of a strategy and write the record."""
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
                config = config_of(system, data, asked, steps, seed)
                nlp, *_ = learn(config, partial(examples, docs=held["dev"]))
                result: dict[str, Any] = {
                    "steps": steps,
                    "seconds": round(time.perf_counter() - started, 1),
                    **{part: score(nlp, examples(nlp, docs)) for part, docs in held.items()},
                }
                if system == "crf_ner":
                    nlp.to_disk(saved)
                with atomic_path(kept) as path:
                    srsly.write_json(path, result)
            if kept.exists():
                row[system] = srsly.read_json(kept)
                print(strategy, seed, share, system, row["decisions"], row[system], flush=True)
        rounds.append(row)
        saved = folder / "crf_ner"
        model = spacy.load(saved) if saved.exists() else None
    files = [data / f"{part}.spacy" for part in ("train", "dev", "test")]
    results = {"sure": SURE, "rounds": rounds}
    write_record(f"{strategy}-{seed}", "active", results, data=files, seed=seed)


def main() -> None:
    options = script_parser(globals())
    names = ", ".join(STRATEGIES)
    options.add_argument("strategy", choices=STRATEGIES, metavar="STRATEGY", help=names)
    options.add_argument("--seed", type=int, default=1, help="of first round and trainings (1)")
    options.add_argument("--system", choices=SYSTEMS, action="append", help="train only this one")
    given = options.parse_args()
    work = Path("training", "active", f"{given.strategy}-{given.seed}")
    systems = given.system or list(SYSTEMS)
    play(given.strategy, given.seed, Path("corpus", "conll2003"), work, systems)


if __name__ == "__main__":
    main()
