"""Measure how many sentences per second a parser parses, and where the time goes.

DATA has one sentence per Doc. MODEL is a pipeline or a config. A config is initialized with TRAIN
(labels and characters) and not trained, because the time does not depend on the weights. The script
times three things in turn: all of `nlp.pipe`, only the model (embedding, encoder, scores of spans),
and only the chart (CKY over those scores). Every second repeat has the opposite order.

Results (kind "figures"): `sentences`, `words`, `threads`, `precision` ("of the model" by default);
`rows` {"whole", "model", "chart": a summary of `performance.timing`, in sentences per second};
`chart_share`, the share of the time.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import xp2torch

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.worker import DocRow, annotate, doc_maker
from spacy_psa.architectures.sentencewise import sentence_scores
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.laboratory.performance.pipelines import open_pipeline
from spacy_psa.laboratory.performance.timing import (
    Timing,
    alternate,
    pin_threads,
    stopwatch,
    summary,
)
from spacy_psa.modules.factored_transformer import FactoredTransformer
from spacy_psa.pipeline.parser.chart import span_count, span_tree
from spacy_psa.pipeline.parser.constituents import word_sentences
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import SplitDocs


class Scores:
    """The model, in the batches of `nlp.pipe`; keeps the scores for `Chart`."""

    name = "model"

    def __init__(self, nlp: Language, texts: list[list[str]]):
        self.parser: Any = nlp.get_pipe("parser")
        self.docs = [Doc(nlp.vocab, words=words) for words in texts]
        self.sentences = [word_sentences(doc)[0] for doc in self.docs]
        self.batch_size = nlp.batch_size
        self.kept: list[tuple[list[int], Any]] = []

    def run(self) -> Timing:
        self.kept = []
        with stopwatch(len(self.docs)) as timings:
            for start in range(0, len(self.docs), self.batch_size):
                some = range(start, min(start + self.batch_size, len(self.docs)))
                split = SplitDocs(self.docs[i] for i in some)
                scores = sentence_scores(self.parser.model, split)
                sizes = [span_count(self.sentences[i]) for i in some]
                for batch in batches_by_size(sizes, self.parser.batch_spans):
                    arrays = scores(batch)[: len(batch)]
                    flat = xp2torch(self.parser.model.ops.xp.concatenate(arrays))
                    self.kept.append(([some[i] for i in batch], flat))
        return timings[0]


class Chart:
    """CKY over the scores of `Scores`."""

    name = "chart"

    def __init__(self, scores: Scores):
        self.scores = scores

    def run(self) -> Timing:
        if not self.scores.kept:
            self.scores.run()
        with stopwatch(len(self.scores.docs)) as timings:
            for batch, flat in self.scores.kept:
                _ = span_tree(flat, [self.scores.sentences[i] for i in batch]).argmax
        return timings[0]


def main() -> None:
    options = script_parser(globals(), "MODEL", "DATA.spacy", "OUT.json")
    options.add_argument("--train", type=Path, help="training data to initialize a config with")
    options.add_argument("--threads", type=int, default=2, help="threads and processors (2)")
    options.add_argument("--repeats", type=int, default=5, help="runs of each (5)")
    options.add_argument("--precision", choices=["float32", "bfloat16"], help="of the encoder")
    given = options.parse_args()
    pin_threads(given.threads)
    nlp = open_pipeline(given.model, given.train, None)
    pipe: Any = nlp.get_pipe("parser")
    for node in pipe.model.walk():
        for shim in node.shims:
            if given.precision and isinstance(shim.module, FactoredTransformer):
                shim.module.precision = given.precision
    texts = [[token.text for token in doc] for doc in read_docbin(given.data, nlp.vocab)]
    whole = DocRow("whole", doc_maker(nlp, texts), partial(annotate, nlp))
    scores = Scores(nlp, texts)
    timed = alternate([whole, scores, Chart(scores)], given.repeats)
    rows = {name: summary(timings) for name, timings in timed.items()}
    seconds = {name: len(texts) / row["per_second"]["median"] for name, row in rows.items()}
    share = round(seconds["chart"] / seconds["whole"], 4)
    figures = {
        "sentences": len(texts),
        "words": sum(map(len, texts)),
        "threads": torch.get_num_threads(),
        "precision": given.precision or "of the model",
        "rows": rows,
        "chart_share": share,
    }
    for name, row in rows.items():
        print(f"{name}: {row['per_second']['median']} sentences/s")
    print(f"chart: {100 * share:.1f}% of the whole")
    write_record(given.out, "parser_speed", figures, data=[given.data])


if __name__ == "__main__":
    main()
