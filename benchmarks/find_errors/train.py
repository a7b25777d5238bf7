"""Train on damaged annotation, and on what `find-errors` and `correct` make of it.

    python -m benchmarks.find_errors.train corpus/conll2003 --seed 1

The seed draws documents of the training data, 5,000 sentences in all, and damages 5% of their
entities at random, or `--damage` percent. `find-errors --folds` judges them by pipelines of the
other documents. Then the same config is trained as often on the same sentences, with the annotation
as it was (`original`), `damaged`, `corrected`, and with the tokens of these corrections as
`missing`. All corrections above a chance are made. Of the development data, damaged as well and
judged by the pipeline of a fold, it is the chance with the most tokens that are right afterwards.

The record (kind "figures") trained-DAMAGE-SEED has `sentences`, the wrong `tokens` of the damaged
and the corrected data, the `chance`, the numbers of places that were `found` and `corrected`, and
for each of the `systems` the figures of `benchmarks.four_tests.score`, the development F1 (`dev`)
and the `seconds` of processor time. Finished steps are kept in training/find_errors.
"""

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import spacy
import srsly
from spacy.tokens import Doc
from thinc.api import Config

from benchmarks.find_errors.measure import PIPE, damaged, types
from benchmarks.four_tests.score import TESTS, measure
from benchmarks.learning import learn
from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.systems.train import run
from spacy_psa.analysis.corrections import correct, make_rows, read_rows
from spacy_psa.analysis.label_errors import find_suspects, ranked
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.result import read_examples
from spacy_psa.training.layers import layered

BASE = Path("configs/ner/small_vectors.cfg")
PASSES, FOLDS = 6, 2
SYSTEMS = ("original", "damaged", "corrected", "missing")


def sample(docs: Sequence[Doc], sentences: int, seed: int) -> list[Doc]:
    """Draw whole documents, in the order of the corpus."""
    names = [doc.user_data["document"] for doc in docs]
    order = sorted(set(names), key=str)
    random.Random(seed).shuffle(order)
    chosen: set[Any] = set()
    while order and sum(name in chosen for name in names) < sentences:
        chosen.add(order.pop())
    return [doc for doc, name in zip(docs, names) if name in chosen]


def config_of(corpus: Path, docs: Sequence[Doc], share: float, seed: int, folder: Path) -> Config:
    """The config for a share of docs; it is evaluated twice."""
    words = round(share * sum(map(len, docs)))
    size = Config({"corpus": {"sentences": round(share * len(docs)), "words": words}})
    size.to_disk(folder / "size.cfg")
    paths = {"paths.vectors": str(corpus / "vectors"), "paths.dev": str(corpus / "dev.spacy")}
    settings = {**paths, "system.seed": seed, "training.max_epochs": PASSES}
    config = layered(BASE, [folder / "size.cfg"], settings)
    config["training"]["eval_frequency"] = config["training"]["max_steps"] // 2
    return config


def wrong_tokens(docs: Sequence[Doc], truth: Sequence[Doc]) -> int:
    """How many tokens have another type than in the truth."""
    return sum(a != b for doc, other in zip(docs, truth) for a, b in zip(types(doc), types(other)))


def best_chance(model: Path, dev: Path, damage: float) -> float:
    """The chance above which corrections of damaged development data leave the fewest errors."""
    nlp = load_pipeline(str(model))
    truth = [doc for doc in read_docbin(dev, nlp.vocab) if len(doc)]
    docs = damaged(truth, damage)
    suspects = ranked(find_suspects(nlp, PIPE, docs).suspects, nlp.get_pipe(PIPE), docs)
    gains = []
    for row in make_rows(suspects, "ents", docs):
        before, after = docs[row["doc"]], docs[row["doc"]].copy()
        correct([after], [{**row, "doc": 0}])
        known = [truth[row["doc"]]]
        gains.append(wrong_tokens([before], known) - wrong_tokens([after], known))
    return round(suspects[int(numpy.cumsum(gains).argmax())].chance, 4)


def as_missing(docs: Sequence[Doc], rows: Sequence[dict[str, Any]]) -> None:
    """Forget the annotation of the places of rows."""
    for row in rows:
        doc, spans = docs[row["doc"]], [*row["annotated"], *row["proposed"]]
        gone = {tuple(each) for each in row["annotated"]}
        kept = [ent for ent in doc.ents if (ent.start, ent.end, ent.label_) not in gone]
        places = {i for start, end, _ in spans for i in range(start, end)}
        places |= {token.i for token in doc if not token.ent_iob}
        doc.set_ents(kept, missing=[doc[i : i + 1] for i in sorted(places)])


def prepare(corpus: Path, folder: Path, sentences: int, damage: float, seed: int) -> dict[str, Any]:
    """Write the training data of each system, and describe them."""
    vocab = spacy.blank("en").vocab
    read = partial(read_docbin, vocab=vocab)
    docs = [doc for doc in read(corpus / "train.spacy") if len(doc)]
    docs = sample(docs, sentences, seed)
    write_docbin(docs, folder / "original.spacy")
    write_docbin(damaged(docs, damage, seed), folder / "damaged.spacy")
    errors, target = folder / "errors.jsonl", folder / "corrected.spacy"
    config_of(corpus, docs, 1 - 1 / FOLDS, seed, folder).to_disk(folder / "fold.cfg")
    given = "--config", folder / "fold.cfg", "--folds", str(FOLDS), "--output", errors
    run("spacy_psa", "find-errors", folder / "damaged.spacy", *given)
    chance = best_chance(folder / "errors-folds/fold-1/model-best", corpus / "dev.spacy", damage)
    run("spacy_psa", "correct", folder / "damaged.spacy", errors, target, "--above", str(chance))
    unknown, rows = read(folder / "damaged.spacy"), read_rows(target.with_suffix(".log.jsonl"))
    as_missing(unknown, rows)
    write_docbin(unknown, folder / "missing.spacy")
    wrong = {name: wrong_tokens(read(folder / f"{name}.spacy"), docs) for name in SYSTEMS[1:3]}
    return {
        "sentences": len(docs),
        "words": sum(map(len, docs)),
        "chance": chance,
        "found": len(read_rows(errors)),
        "corrected": len(rows),
        "tokens": wrong,
    }


def main() -> None:
    options = script_parser(globals())
    options.add_argument("corpus", type=Path, metavar="CORPUS", help="folder of CoNLL-2003")
    options.add_argument("--seed", type=int, default=1, help="of the draw and the trainings (1)")
    options.add_argument("--sentences", type=int, default=5000, help="of training (5000)")
    options.add_argument("--damage", type=int, default=5, help="wrong entities, in percent (5)")
    given = options.parse_args()
    corpus, seed = given.corpus, given.seed
    name = f"trained-{given.damage}-{seed}"
    folder = Path("training", "find_errors", f"{given.sentences}-{name}")
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "data.json"
    if not kept.exists():
        data = prepare(corpus, folder, given.sentences, given.damage / 100, seed)
        with atomic_path(kept) as path:
            srsly.write_json(path, data)
    data = srsly.read_json(kept)
    print(data, flush=True)
    docs = read_docbin(folder / "original.spacy", spacy.blank("en").vocab)
    systems: dict[str, Any] = {}
    for system in SYSTEMS:
        kept = folder / f"{system}.json"
        if not kept.exists():
            config = config_of(corpus, docs, 1.0, seed, folder)
            config["paths"]["train"] = str(folder / f"{system}.spacy")
            nlp, dev, cost = learn(config, partial(read_examples, path=corpus / "dev.spacy"))
            with atomic_path(kept) as path:
                srsly.write_json(path, {**measure(nlp, corpus), "dev": dev["ents_f"], **cost})
        systems[system] = srsly.read_json(kept)
        print(seed, system, systems[system]["dev"], systems[system]["f1"], flush=True)
    files = [corpus / f"{part}.spacy" for part in ("train", "dev", *TESTS.values())]
    result = {**data, "systems": systems}
    write_record(name, "find_errors", result, data=files, seed=seed)


if __name__ == "__main__":
    main()
