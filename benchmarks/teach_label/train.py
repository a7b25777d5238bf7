"""Teach a label to a recogniser that was trained without it, and compare with other ways.

CORPUS is a folder with `train.spacy`, `dev.spacy`, `test.spacy` and `vectors`, as the project's
`convert` makes it. The seed shuffles the training sentences. Of the first --sentences, the
entities of --label become O: these are the old data. The next 3,000 are raw text. The examples are
drawn from the rest, half of them with the label; fewer examples are a part of more. The systems:

- `old`: the config that `spacy-psa init config` writes for the old data, trained on it
- `taught`: `old` after `spacy-psa teach-label`, with the raw text; in the examples, only --label is
  annotated
- `taught_examples`: the same without the raw text
- `joint`: a new model of this config, trained on the old data and the examples together. The
  examples have all labels. In the old data, a token outside of entities may have --label
- `spacy_old`: spaCy's `ner` for efficiency, trained on the old data for the time of `old`
- `spacy`: `spacy_old`, updated on the examples (all labels) for as many words as `taught`
- `spacy_rehearse`: the same, after each update with `nlp.rehearse` on a batch of the raw text

The record benchmarks/teach_label/results/CORPUS-LABEL-SEED.json has `systems`: {system or
SYSTEM-SIZE: {`old`: the test F1 of the old labels together, `new`: that of the label, `types`:
{label: F1}, `seconds` of processor time}}, and `data`: the numbers of sentences, and of the label's
entities in the examples.
Finished trainings are kept in training/teach_label, and the record has those so far.
"""

import random
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import spacy
import srsly
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import fix_random_seed
from thinc.api import Config

from benchmarks.cased_vectors import cased_vectors
from benchmarks.learning import learn
from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.small_data.train import config_of
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.scoring.result import read_examples
from spacy_psa.sentences import unannotated
from spacy_psa.structs.chain import LinearChain
from spacy_psa.training.new_label import (
    EXAMPLE_WORDS,
    TEXT_WORDS,
    count_updates,
    learn_labels,
    peak_rate,
    stream,
    teach_label,
)

RESULTS = Path(__file__).parent / "results"
RAW = 3000
SIZES = (50, 200, 1000)
PASSES = 12
"""Of a joint training over its data, as in the config of `old`."""


def only(doc: Doc, keep: Callable[[str], bool]) -> Doc:
    """Copy a doc with the entities of some labels; all other tokens are O."""
    copy = doc.copy()
    copy.set_ents([ent for ent in doc.ents if keep(ent.label_)])
    return copy


def draw(corpus: Path, sentences: int, label: str, seed: int, folder: Path) -> dict[str, Any]:
    """Write the parts of the data to a folder, and count them."""
    docs = [doc for doc in read_docbin(corpus / "train.spacy", spacy.blank("en").vocab) if len(doc)]
    random.Random(seed).shuffle(docs)
    old, others = docs[:sentences], docs[sentences:]
    raw, rest = others[:RAW], others[RAW:]
    write_docbin([only(doc, lambda each: each != label) for doc in old], folder / "old.spacy")
    write_docbin(map(unannotated, raw), folder / "raw.spacy")
    having = [any(ent.label_ == label for ent in doc.ents) for doc in rest]
    parts = [[doc for doc, has in zip(rest, having) if has is each] for each in (True, False)]
    counts: dict[str, Any] = {"old": len(old), "raw": len(raw)}
    for size in SIZES:
        chosen = [doc for part in parts for doc in part[: size // 2]]
        write_docbin(chosen, folder / f"all-{size}.spacy")
        taught = [only(doc, lambda each: each == label) for doc in chosen]
        write_docbin(taught, folder / f"new-{size}.spacy")
        counts[str(size)] = sum(len(doc.ents) for doc in taught)
    return counts


def scored(nlp: Language, test: Path, label: str) -> dict[str, Any]:
    """The test F1 of the old labels together, of the new one, and of each."""
    examples = read_examples(nlp, test)
    types: dict[str, list[int]] = {}
    counts: dict[bool, list[int]] = {True: [0, 0, 0], False: [0, 0, 0]}
    for example, doc in zip(examples, nlp.pipe([eg.predicted for eg in examples])):
        predicted, gold = (
            {(ent.start, ent.end, ent.label_) for ent in each.ents}
            for each in (doc, example.reference)
        )
        for i, part in enumerate((predicted & gold, predicted, gold)):
            for _, _, each in part:
                counts[each == label][i] += 1
                types.setdefault(each, [0, 0, 0])[i] += 1
    old, new = (2 * counts[is_new][0] / sum(counts[is_new][1:] or [1]) for is_new in (False, True))
    f1 = {name: 2 * hit / (a + b) for name, (hit, a, b) in sorted(types.items())}
    return {"old": old, "new": new, "types": f1}


class Gold:
    """Stands for a teacher: it is sure of the annotation with the old labels."""

    def __init__(self, pipe: Any, labels: int, references: dict[str, list[Any]]):
        self.pipe: Any = SimpleNamespace(tags=pipe.tags[: 1 + 4 * labels], _given=self.given)
        self.scheme, self.references = pipe.scheme, references

    def potentials(self, docs: list[Doc]) -> list[list[Any]]:
        """The tags of each doc, from which `given` makes the distributions."""
        return [[self.scheme.encode(len(doc), self.references[doc.text])] for doc in docs]

    def given(self, tags: list[Any], _: object) -> LinearChain:
        lengths = torch.tensor([len(each) for each in tags])
        scores = torch.full((len(tags), int(lengths.max()), len(self.pipe.tags)), -torch.inf)
        for row, each in enumerate(tags):
            scores[row, torch.arange(len(each)), torch.from_numpy(each)] = 0.0
        return LinearChain.from_emissions(scores, lengths)


def joint(config: Config, folder: Path, size: int, label: str) -> Language:
    """Train a model on the old data, where the label is unknown, and on examples."""
    labels = spacy.load(folder / "old").get_pipe("ner").labels  # type: ignore[attr-defined]
    config["initialize"]["components"] = {"ner": {"labels": [*labels, label]}}
    fix_random_seed(config["system"]["seed"])
    nlp = init_nlp(config)
    old, new, full = (
        list(read_docbin(folder / f"{part}.spacy", nlp.vocab))
        for part in ("old", f"new-{size}", f"all-{size}")
    )
    pipe: Any = nlp.get_pipe("ner")
    references = {
        doc.text: [(e.start, e.end, e.label_) for e in doc.ents if e.label_ != label]
        for doc in (*full, *old)
    }
    examples = [Example(unannotated(doc), doc) for doc in new]
    examples += [Example(unannotated(doc), unannotated(doc)) for doc in old]
    teacher: Any = Gold(pipe, len(labels), references)
    optimizer, rate = peak_rate(nlp)
    words = sum(len(example.predicted) for example in examples)
    batches = stream(examples, EXAMPLE_WORDS, random.Random(config["system"]["seed"]))
    steps = PASSES * words // EXAMPLE_WORDS
    for step in range(steps):
        optimizer.learn_rate = rate * (1 - step / steps)
        learn_labels(pipe, teacher, next(batches), 0.0)
        pipe.finish_update(optimizer)
    return nlp


def update_spacy(folder: Path, size: int, label: str, seed: int, rehearse: bool) -> Language:
    """Update spaCy's `ner` on the examples, and let it rehearse on the raw text."""
    nlp = spacy.load(folder / "spacy_old")
    nlp.replace_listeners("tok2vec", "ner", ["model.tok2vec"])  # without this, it cannot rehearse
    full, raw = (
        list(read_docbin(folder / f"{part}.spacy", nlp.vocab)) for part in (f"all-{size}", "raw")
    )
    nlp.get_pipe("ner").add_label(label)  # type: ignore[attr-defined]
    optimizer = nlp.resume_training()
    fix_random_seed(seed)
    examples = [Example(unannotated(doc), doc) for doc in full]
    texts = [Example(unannotated(doc), unannotated(doc)) for doc in raw]
    draws = random.Random(seed)
    batches, others = stream(examples, EXAMPLE_WORDS, draws), stream(texts, TEXT_WORDS, draws)
    for _ in range(count_updates(examples)):
        nlp.update([Example(eg.x.copy(), eg.y) for eg in next(batches)], sgd=optimizer, drop=0.1)
        if rehearse:
            nlp.rehearse([Example(eg.x.copy(), eg.y) for eg in next(others)], sgd=optimizer)
    return nlp


def systems(
    corpus: Path, folder: Path, label: str, seed: int
) -> Iterator[tuple[str, Callable[[], Language]]]:
    """The trainings in their order, by name."""
    old = folder / "old"
    vectors = corpus / "vectors"
    dev = folder / "dev.spacy"

    def config(system: str) -> Config:
        table = vectors if system == "ours" else cased_vectors(vectors, folder.parent / "cased")
        return config_of(system, folder / "old.spacy", dev, table, seed)

    def train(system: str, name: str, limit: float | None) -> Language:
        nlp, _, _ = learn(config(system), partial(read_examples, path=dev), limit)
        nlp.to_disk(folder / name)
        return nlp

    def teach(size: int, texts: Path | None) -> Language:
        output = folder / "taught"
        shutil.rmtree(output, ignore_errors=True)
        examples = folder / f"new-{size}.spacy"
        print(teach_label(str(old), label, examples, output, texts, seed=seed), flush=True)
        return spacy.load(output)

    yield "old", lambda: train("ours", "old", None)
    limit = srsly.read_json(folder / "old.json")["seconds"]
    yield "spacy_old", lambda: train("efficiency", "spacy_old", limit)
    for size in SIZES:
        yield f"taught-{size}", partial(teach, size, folder / "raw.spacy")
        yield f"joint-{size}", partial(joint, config("ours"), folder, size, label)
        yield f"spacy-{size}", partial(update_spacy, folder, size, label, seed, False)
        yield f"spacy_rehearse-{size}", partial(update_spacy, folder, size, label, seed, True)
        yield f"taught_examples-{size}", partial(teach, size, None)


def main() -> None:
    options = script_parser(globals())
    options.add_argument("corpus", type=Path, metavar="CORPUS", help="folder of a corpus")
    options.add_argument("--label", default="MISC", help="the label to hold out (MISC)")
    options.add_argument("--sentences", type=int, default=5000, help="of the old data (5000)")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", nargs="+", help="names of trainings, such as taught-50")
    given = options.parse_args()
    torch.set_num_threads(1)
    name = f"{given.corpus.name}-{given.label}-{given.seed}"
    folder = Path("training", "teach_label", name)
    folder.mkdir(parents=True, exist_ok=True)
    data = draw(given.corpus, given.sentences, given.label, given.seed, folder)
    held = [
        only(doc, lambda each: each != given.label)
        for doc in read_docbin(given.corpus / "dev.spacy", spacy.blank("en").vocab)
    ]
    write_docbin(held, folder / "dev.spacy")
    rows = {}
    for system, train in systems(given.corpus, folder, given.label, given.seed):
        kept = folder / f"{system}.json"
        if not kept.exists() and (not given.only or system in given.only):
            started = time.process_time()
            nlp = train()
            seconds = round(time.process_time() - started, 1)
            row = {**scored(nlp, given.corpus / "test.spacy", given.label), "seconds": seconds}
            with atomic_path(kept) as path:
                srsly.write_json(path, row)
        if kept.exists():
            rows[system] = srsly.read_json(kept)
            print(name, system, rows[system], flush=True)
    files = [given.corpus / f"{part}.spacy" for part in ("train", "dev", "test")]
    results = {"data": data, "systems": rows}
    write_record(RESULTS / f"{name}.json", "teach_label", results, data=files, seed=given.seed)


if __name__ == "__main__":
    main()
