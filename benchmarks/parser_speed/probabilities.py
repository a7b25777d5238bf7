"""Measure the cost of confidences and of the k best trees, compared with the best tree.

A parser parses the sentences of DATA in turn in these ways:

- "best": `nlp.pipe`; "confidences": the same with `confidence = true`
- "best, one by one": `nlp(doc)`; "10 best": `parser.kbest(doc, 10)`, which also parses one doc

Results (kind "figures"): `sentences`, `words`, `threads`; `rows` {way: a summary of
`performance.timing` in sentences per second}; `cost` {"confidences", "10 best": the median over the
repeats of the ratio of the processor time to that of "best" or "best, one by one"}.
"""

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.tokens import Doc

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.worker import DocRow, annotate, doc_maker, faster
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.laboratory.performance.timing import alternate, pin_threads, summary
from spacy_psa.loading import load_pipeline

K = 10
BASES = {"confidences": "best", f"{K} best": "best, one by one"}


def ways(model: str, data: Path, number: int) -> list[DocRow]:
    """The rows, each of which is a way to parse all sentences."""
    nlp = load_pipeline(model)
    parser: Any = nlp.get_pipe("parser")
    texts = [[token.text for token in doc] for doc in islice(read_docbin(data, nlp.vocab), number)]
    make = doc_maker(nlp, texts)

    def pipe(docs: list[Doc], confidence: bool) -> None:
        parser.confidence = confidence
        annotate(nlp, docs)

    def each(docs: list[Doc], parse: Callable[[Doc], object]) -> None:
        parser.confidence = False
        for doc in docs:
            parse(doc)

    return [
        DocRow("best", make, lambda docs: pipe(docs, False)),
        DocRow("confidences", make, lambda docs: pipe(docs, True)),
        DocRow("best, one by one", make, lambda docs: each(docs, nlp)),
        DocRow(f"{K} best", make, lambda docs: each(docs, lambda doc: parser.kbest(doc, K))),
    ]


def main() -> None:
    options = script_parser(globals(), "MODEL", "DATA.spacy", "OUT.json")
    options.add_argument("--sentences", type=int, default=300, help="sentences of DATA (300)")
    options.add_argument("--repeats", type=int, default=5, help="runs of each (5)")
    given = options.parse_args()
    pin_threads(1)
    rows = ways(given.model, given.data, given.sentences)
    timed = alternate(rows, given.repeats)
    docs = rows[0].make()
    figures = {
        "sentences": len(docs),
        "words": sum(map(len, docs)),
        "threads": 1,
        "rows": {name: summary(timings) for name, timings in timed.items()},
        "cost": {way: faster(timed[best], timed[way]) for way, best in BASES.items()},
    }
    print(json.dumps(figures["cost"]))
    files = [given.data, Path(given.model) / "config.cfg"]
    write_record(given.out, "parser_speed", figures, data=files)


if __name__ == "__main__":
    main()
