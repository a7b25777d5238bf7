"""Measure the cost of confidences and n-best analyses, compared with only Viterbi.

Times three tasks on one thread, over the tokenized documents of TEST.spacy: `nlp.pipe` with only
the most probable analysis, `nlp.pipe` with confidence = true, and the 10 best analyses of each
document (in batches of nlp.batch_size). The tasks run in turn, in the opposite order in every
second repeat; a first repeat does not count. `seconds` are processor time (user and system), which
other processes hardly disturb. The cost is the median over the repeats of the ratio to Viterbi
within the repeat, minus 1.

Results (kind "figures"): `threads`; `n`, the number of analyses; `models`, {path: {`documents`,
`words`, `seconds` and `wall_seconds` {task: of each repeat}, `batch_size`, `cost` {task:
{`median`, `least`, `most`, `bound`, `within`: whether the median is within the bound}}}}. The
tasks are "viterbi", "confidence" and "nbest".
"""

import json
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.util import minibatch

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.worker import DocRow, annotate, doc_maker
from spacy_psa.laboratory.performance.timing import alternate
from spacy_psa.loading import confident_pipe

BOUNDS = {"confidence": 0.30, "nbest": 1.00}
N = 10


def tasks(nlp: Language, words: list[list[str]]) -> list[DocRow]:
    """The rows of the three tasks."""
    pipe, make = confident_pipe(nlp, None), doc_maker(nlp, words)

    def stream(docs: list[Doc], confidence: bool) -> None:
        pipe.confidence = confidence
        annotate(nlp, docs)

    def nbest(docs: list[Doc]) -> None:
        for batch in minibatch(docs, size=nlp.batch_size):
            for analyses in pipe.analyses(batch):
                analyses.kbest(N)

    return [
        DocRow("viterbi", make, partial(stream, confidence=False)),
        DocRow("confidence", make, partial(stream, confidence=True)),
        DocRow("nbest", make, nbest),
    ]


def measure(model: str, test: Path, repeats: int) -> dict[str, Any]:
    """The figures of one pipeline."""
    nlp = spacy.load(model)
    words = [[t.text for t in doc] for doc in DocBin().from_disk(test).get_docs(nlp.vocab)]
    timed = alternate(tasks(nlp, words), repeats)
    seconds = {name: [round(t.cpu_seconds, 3) for t in each] for name, each in timed.items()}
    wall = {name: [round(t.seconds, 3) for t in each] for name, each in timed.items()}
    result: dict[str, Any] = {"documents": len(words), "words": sum(map(len, words))}
    result |= {"seconds": seconds, "wall_seconds": wall, "batch_size": nlp.batch_size, "cost": {}}
    for name, bound in BOUNDS.items():
        ratios = [a / b - 1 for a, b in zip(seconds[name], seconds["viterbi"])]
        median = statistics.median(ratios)
        result["cost"][name] = {
            "median": round(median, 4),
            "least": round(min(ratios), 4),
            "most": round(max(ratios), 4),
            "bound": bound,
            "within": median <= bound,
        }
    return result


def main() -> None:
    options = script_parser(globals(), "TEST.spacy", "OUT.json")
    options.add_argument("models", nargs="+", metavar="MODEL")
    options.add_argument("--repeats", type=int, default=7, help="number of repeats (7)")
    given = options.parse_args()
    torch.set_num_threads(1)
    results = {}
    for model in given.models:
        results[model] = measure(model, given.test, given.repeats)
        print(model, json.dumps(results[model]["cost"]), flush=True)
    files = [given.test, *(Path(model) / "config.cfg" for model in results)]
    write_record(given.out, "confidence", {"threads": 1, "n": N, "models": results}, data=files)


if __name__ == "__main__":
    main()
