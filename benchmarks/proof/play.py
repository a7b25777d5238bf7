"""Annotate with a simulated annotator from nothing, teach, and count the clicks of the page.

The annotator knows the entities of a pool of sentences, which a seed draws from the training data.
The page knows only the labels. Each round, the annotator decides some sentences completely. Then
the model learns from them, and is scored on development data, which nothing else reads. The script
ends when F1 reaches `--target`, or the pool is decided.

WAY is one of:

- `entropy`: the page with its defaults: `serve --labels … --vectors …`, Teach after each round, and
  the sentences with the most entropy a token first.
- `errors`: the same with `--order errors`.
- `random`: the same with `--order random`.
- `spacy`: random sentences, with suggestions by spaCy's `ner` (its efficiency config with the same
  vectors, also for capitalised words), which is trained from new weights in each round.

CORPUS is the folder of a corpus of the project. Of nested entities, those in no other one count.

The record benchmarks/proof/results/CORPUS-WAY-SEED.json has `pool`, `target` and `rounds`, each
with the totals `texts`, `words`, `entities`, `clicks` with the suggestions of the page, and
`unaided` clicks without any, and with `dev` (`ents_p`, `ents_r`, `ents_f`) and `seconds` of the
processor. Rounds are kept in training/proof, so that the same command continues an interrupted run.
`--rounds N` ends after N more.
"""

import io
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from benchmarks.active.train import BATCH_WORDS, config_of, examples
from benchmarks.learning import learn, score
from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.studio.active_learning.beginning import Beginning
from spacy_psa.studio.active_learning.decisions import Decision, Labelled
from spacy_psa.studio.active_learning.queue import Order, usefulness
from spacy_psa.studio.active_learning.store import AnnotationStore, Component, open_store
from spacy_psa.studio.active_learning.teach_process import HELD_OUT, Lesson, run
from spacy_psa.studio.active_learning.tokens import Tokens

WAYS = ("entropy", "errors", "random", "spacy")
TOTALS = (20, 50, 100, 200, 350, 500, 700, 1000, 1400, 2000, 3000)
"""The decided texts after each round."""
LEAST = 0.3
"""Suggestions of a lower probability are not shown, as on the page."""
PASSES, STEPS = 50, 600
"""The most passes and batches of 250 words in a training of spaCy's `ner`."""
CORRECTION = 2
"""Clicks of a correction: on the span or over its words, and on a label or on "Wrong"."""

Suggest = Callable[[Sequence[Labelled], Sequence[Labelled]], set[Labelled]]
"""Suggests spans, given the accepted and the rejected ones."""


def count_clicks(gold: set[Labelled], suggest: Suggest) -> int:
    """Count the fewest clicks until the page has the gold spans of a sentence and nothing else.

    A missing span is selected and gets its label, which replaces suggestions that it overlaps; then
    suggestions that are still wrong are rejected. After each correction, the page suggests anew.
    "Right as shown" is one more click. Where marking all gold spans needs fewer, this is done, and
    "Nothing else here" ends the sentence.

    Examples:
        >>> count_clicks({(0, 2, "PER")}, lambda accepted, rejected: {(0, 2, "PER")})
        1
        >>> count_clicks({(0, 2, "PER")}, lambda accepted, rejected: set(accepted))
        3
        >>> count_clicks(set(), lambda accepted, rejected: {(0, 2, "PER")} - {*rejected})
        1
    """
    accepted: list[Labelled] = []
    rejected: list[Labelled] = []
    while (shown := suggest(accepted, rejected)) != gold:
        missing = sorted(gold - shown)
        if missing:
            accepted.append(missing[0])
        else:
            rejected.append(min(shown - gold))
    return 1 + CORRECTION * min(len(gold), len(accepted) + len(rejected))


def fixed(
    predicted: set[Labelled], accepted: Sequence[Labelled], rejected: Sequence[Labelled]
) -> Any:
    """Suggest what a model predicted once, without what the annotator has decided otherwise."""
    free = [
        span
        for span in predicted - {*rejected}
        if not any(span[0] < end and start < span[1] for start, end, _ in accepted)
    ]
    return {*accepted, *free}


def exact(analyses: Any, accepted: Sequence[Labelled], rejected: Sequence[Labelled]) -> Any:
    """Suggest the best analysis given the decisions, as the page does."""
    given = analyses.given(require=accepted, forbid=rejected)
    return {
        span
        for sentence in given.sentences
        for _, spans in sentence.kbest(1)
        for span in spans
        if span in accepted or sentence.posterior(*span) >= LEAST
    }


def flat(doc: Doc) -> set[Labelled]:
    """The entities; of nested ones, those that are in no other."""
    spans = filter_spans(doc.spans["sc"]) if "sc" in doc.spans else doc.ents
    return {(span.start, span.end, span.label_) for span in spans}


class Play:
    """The state of a run: its texts, decisions and model.

    Args:
        corpus: the folder of the corpus.
        work: the folder of the run.
        way: as in the docstring of the module.
        size: the sentences of the pool.
    """

    def __init__(self, corpus: Path, work: Path, way: str, size: int, seed: int):
        self.corpus, self.work, self.way, self.seed = corpus, work, way, seed
        vocab = spacy.blank("en").vocab
        docs = {
            doc.text: doc for doc in read_docbin(corpus / "train.spacy", vocab) if doc.text.strip()
        }
        pool = random.Random(seed).sample([*docs.values()], min(size, len(docs)))
        self.texts = dict(enumerate(map(Tokens.of, pool), 1))
        self.gold = dict(enumerate(map(flat, pool), 1))
        self.dev = read_docbin(corpus / "dev.spacy", vocab)
        for doc in self.dev:
            doc.ents = [Span(doc, *span) for span in flat(doc)]
        self.labels = tuple(sorted({label for spans in self.gold.values() for *_, label in spans}))

    @property
    def model(self) -> Path:
        return self.work / "texts-model"

    def order(self, left: list[int], nlp: Language | None) -> list[int]:
        """Order the texts that are left, the most useful first."""
        if nlp is None or self.way not in ("entropy", "errors"):
            return sorted(left, key=lambda number: random.Random(f"{self.seed} {number}").random())
        pipe: Any = nlp.get_pipe("ner")
        docs = [self.texts[number].doc(nlp.vocab) for number in left]
        values = [usefulness(each, Order(self.way)) for each in pipe.analyses(docs)]
        ranked = sorted(zip(values, left), key=lambda pair: (-pair[0], pair[1]))
        return [number for _, number in ranked]

    def clicks(self, numbers: list[int], nlp: Language | None) -> int:
        """Count the clicks for some texts with the suggestions of a model, or without any."""
        if nlp is None:
            return sum(count_clicks(self.gold[i], partial(fixed, set())) for i in numbers)
        docs = [self.texts[number].doc(nlp.vocab) for number in numbers]
        pipe: Any = nlp.get_pipe("ner")
        if self.way == "spacy":
            shown = [partial(fixed, flat(doc)) for doc in nlp.pipe(docs)]
        else:
            shown = [partial(exact, each) for each in pipe.analyses(docs)]
        return sum(count_clicks(self.gold[i], each) for i, each in zip(numbers, shown, strict=True))

    def teach(self, store: AnnotationStore, numbers: list[int]) -> Language:
        """Save the decisions about texts, let the model learn from all, and return it."""
        for number in numbers:
            length = len(self.texts[number].words)
            spans = [Decision("accepted", *span) for span in sorted(self.gold[number])]
            store.decide(number, "ann", "ner", [*spans, Decision("complete", 0, length)])
        if self.way == "spacy":
            return self._train_spacy(store)
        begin = Beginning(labels=self.labels, vectors=str(self.corpus / "vectors"))
        lesson = Lesson(
            model=str(self.model) if self.model.exists() else None,
            store=store.path,
            component="ner",
            output=self.model,
            seed=self.seed,
            begin=begin,
        )
        run(lesson, io.StringIO())
        return spacy.load(self.model)

    def _train_spacy(self, store: AnnotationStore) -> Language:
        vocab = spacy.blank("en").vocab
        parts: tuple[list[Doc], list[Doc]] = ([], [])
        for number in store.all_decided("ner"):
            doc = self.texts[number].doc(vocab)
            doc.ents = [Span(doc, *span) for span in self.gold[number]]
            parts[number % HELD_OUT == 0].append(doc)
        path = self.work / "train.spacy"
        write_docbin(parts[0], path)
        steps = max(20, min(STEPS, PASSES * sum(map(len, parts[0])) // BATCH_WORDS))
        config = config_of("spacy", self.corpus, path, steps, self.seed)
        nlp, *_ = learn(config, partial(examples, docs=parts[1]))
        nlp.to_disk(self.model)
        return nlp

    def row(self, last: dict[str, Any], numbers: list[int], nlp: Language | None) -> dict[str, Any]:
        """Count on after some texts, with the model that suggested."""
        added = {
            "words": sum(len(self.texts[i].words) for i in numbers),
            "entities": sum(len(self.gold[i]) for i in numbers),
            "clicks": self.clicks(numbers, nlp),
            "unaided": self.clicks(numbers, None),
        }
        row: dict[str, Any] = {key: last.get(key, 0) + value for key, value in added.items()}
        return {"texts": [*last.get("texts", []), *numbers], **row}


def play(
    corpus: Path, way: str, seed: int, size: int, target: float, most: int, totals: Sequence[int]
) -> list[dict[str, Any]]:
    """Play at most some rounds, and return all of the run; a last one that is whole is recorded."""
    work = Path("training", "proof", f"{corpus.name}-{way}-{seed}")
    work.mkdir(parents=True, exist_ok=True)
    this, kept = Play(corpus, work, way, size, seed), work / "rounds.json"
    rounds: list[dict[str, Any]] = srsly.read_json(kept) if kept.exists() else []
    with open_store(work / "texts.sqlite") as store:
        store.use(Component("ner", this.labels, None))
        store.add((tokens, {}) for tokens in this.texts.values())
        nlp = spacy.load(this.model) if rounds else None
        ends = [total for total in totals if total < len(this.texts)] + [len(this.texts)]
        for total in ends[len(rounds) :][:most]:
            if rounds and rounds[-1]["dev"]["ents_f"] >= target:
                break
            started = time.process_time()
            last = rounds[-1] if rounds else {}
            left = sorted({*this.texts} - {*last.get("texts", [])})
            numbers = this.order(left, nlp)[: total - len(last.get("texts", []))]
            row = this.row(last, numbers, nlp)
            nlp = this.teach(store, numbers)
            row["dev"] = score(nlp, examples(nlp, this.dev))
            row["seconds"] = round(time.process_time() - started, 1)
            rounds.append(row)
            with atomic_path(kept) as path:
                srsly.write_json(path, rounds)
            print(way, seed, total, row["clicks"], row["unaided"], row["dev"], flush=True)
    return rounds


def main() -> None:
    options = script_parser(globals(), "CORPUS")
    options.add_argument("way", choices=WAYS, metavar="WAY", help=", ".join(WAYS))
    options.add_argument("--seed", type=int, default=1, help="of the pool and all trainings (1)")
    options.add_argument("--pool", type=int, default=3000, help="sentences of the pool (3000)")
    options.add_argument("--target", type=float, default=0.85, help="F1 to reach (0.85)")
    options.add_argument("--rounds", type=int, default=len(TOTALS), help="end after so many")
    given = options.parse_args()
    rounds = play(
        given.corpus, given.way, given.seed, given.pool, given.target, given.rounds, TOTALS
    )
    results = {
        "pool": given.pool,
        "target": given.target,
        "rounds": [{**row, "texts": len(row["texts"])} for row in rounds],
    }
    files = [given.corpus / f"{part}.spacy" for part in ("train", "dev")]
    name = f"{given.corpus.name}-{given.way}-{given.seed}"
    write_record(name, "proof", results, data=files, seed=given.seed)


if __name__ == "__main__":
    main()
