"""Measure how much document memory slows down annotation.

Annotates the documents of a file with a pipeline, in turn with its document memory and without it,
`--rounds` times in one thread. Times are processor times.

Results (kind "figures"): `words`; `precision`; `memory` and `sentences`, the words per second in
each round.
"""

from functools import partial
from pathlib import Path
from typing import Any, get_args

import spacy
import torch
from spacy.tokens import Doc
from spacy.util import dict_to_dot, load_config
from thinc.api import Model

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.worker import DocRow, annotate, tokens
from spacy_psa.architectures import documents
from spacy_psa.corpora.documents import read_document_corpus
from spacy_psa.laboratory.performance.timing import alternate
from spacy_psa.modules.products import Precision


def measure(path: Path, data: Path, precision: Precision, rounds: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    settings = dict_to_dot(load_config(path / "config.cfg"))
    nlp = spacy.load(
        path, config={name: precision for name in settings if name.endswith(".precision")}
    )
    gold = [example.predicted for example in read_document_corpus(data)(nlp)]
    model: Model = nlp.get_pipe("ner").model  # type: ignore[attr-defined]
    [memory] = [node for node in model.walk() if node.name == "document_memory"]

    def make() -> list[Doc]:
        return [
            Doc(doc.vocab, [t.text for t in doc], sent_starts=[t.is_sent_start for t in doc])
            for doc in gold
        ]

    def do(way: Any, docs: list[Doc]) -> None:
        memory._func = way
        annotate(nlp, docs)

    ways = {"memory": memory._func, "sentences": _without}
    rows = [DocRow(name, make, partial(do, way), tokens) for name, way in ways.items()]
    timed = alternate(rows, rounds)
    rates = {name: [round(t.amount / t.cpu_seconds) for t in each] for name, each in timed.items()}
    return {"words": sum(map(len, gold)), "precision": precision, **rates}


def _without(model: Any, docs: list[Doc], is_train: bool) -> tuple[list[Any], Any]:
    """The vectors of the sentences without the memory."""
    vectors, _ = documents._below(model, docs, is_train)
    rows = iter(vectors)
    xp = model.ops.xp
    return [xp.concatenate([next(rows) for _ in doc.sents]) for doc in docs], None


def main() -> None:
    options = script_parser(globals(), "OUT.json", "MODEL", "DATA.spacy")
    options.add_argument("--precision", choices=get_args(Precision), default="float32")
    options.add_argument("--rounds", type=int, default=7, help="times that it is repeated (7)")
    given = options.parse_args()
    results = measure(Path(given.model), given.data, given.precision, given.rounds)
    write_record(given.out, "documents", results, data=[given.data])


if __name__ == "__main__":
    main()
