"""Time four components over one encoder, next to four pipelines with an encoder each.

`shared` is configs/shared/pretrained.cfg: parts of speech, chunks, entities and trees from one pass
of the encoder. The other pipelines are the pretrained.cfg of each task; `four` runs them one after
the other. All annotate the first documents of GUM's test set, whose sentences are known, in turn,
on one thread. The weights above the encoder are random; the work does not depend on them.

Run this in a folder where the project's `assets` and `convert` have made GUM. The encoder is a
folder of Hugging Face in encoders/. The record of the kind "speed" is
benchmarks/pretrained/results/shared-ENCODER.json.
"""

from itertools import islice
from pathlib import Path
from typing import Any

import spacy

from benchmarks.pretrained.speed import ENCODERS, PRECISIONS, Documents, in_precision, make
from benchmarks.pretrained.train import TASKS
from benchmarks.record import save_record
from benchmarks.script import script_parser
from benchmarks.wrap import wrap
from spacy_psa.corpora.documents import read_document_corpus
from spacy_psa.laboratory.performance.sections import record, timed
from spacy_psa.laboratory.performance.timing import Row, Timing, pin_threads
from spacy_psa.scoring.provenance import command

CORPUS = Path("corpus/gum")
FOLDER = Path("training/pretrained/shared")
WIDTHS = {"minilm": 384, "mpnet": 768}
"""Of the encoders; the shape and the characters of words have 204 more."""


class InTurn:
    """Annotates with several pipelines, one after the other."""

    def __init__(self, name: str, rows: list[Documents]):
        self.name, self.rows = name, rows

    def run(self) -> Timing:
        """Annotate once with each."""
        timings = [row.run() for row in self.rows]
        seconds, cpu_seconds = (sum(each) for each in zip(*(t[1:] for t in timings)))
        return Timing(timings[0].amount, seconds, cpu_seconds)


def measure(encoder: str, options: Any) -> dict[str, Any]:
    pin_threads(1)
    documents = read_document_corpus(CORPUS / "test.spacy")(spacy.blank("en"))
    gold = [example.reference for example in islice(documents, options.documents)]
    width = [f"shared.width={204 + WIDTHS[encoder]}"]
    paths = {
        task: make(
            FOLDER / f"{task}_{encoder}",
            f"configs/{task}/pretrained.cfg",
            CORPUS,
            [*ENCODERS[encoder], *(width if task == "shared" else [])],
        )
        for task in ("shared", *TASKS)
    }
    rows: list[Row] = []
    for precision in PRECISIONS:
        own = {
            task: Documents(f"{task} {precision}", in_precision(path, precision), gold)
            for task, path in paths.items()
        }
        four = InTurn(f"four {precision}", [own[task] for task in TASKS])
        rows += [*own.values(), four]

    def tell(name: str, number: int) -> None:
        print(number, name, flush=True)

    words = sum(map(len, gold))
    sections = {"annotation": {"words": words, "rows": timed(rows, options.repeats, tell)}}
    settings = {"threads": 1, "repeats": options.repeats, "documents": options.documents}
    names = {task: str(path) for task, path in paths.items()}
    return record(command(), settings, names, [CORPUS / "test.spacy"], sections)


def main() -> None:
    options = script_parser(globals())
    options.add_argument("encoder", choices=ENCODERS, help="the encoder")
    options.add_argument("--documents", type=int, default=4, help="documents of a run (4)")
    options.add_argument("--repeats", type=int, default=3, help="runs of each row (3)")
    given = options.parse_args()
    save_record(wrap(measure(given.encoder, given), "pretrained", f"shared-{given.encoder}"))


if __name__ == "__main__":
    main()
