"""Measure whether promises of recall are kept, and how far they fail on documents of another kind.

Splits the documents of the development and the test data of CoNLL-2003 into halves many times,
finds the threshold of each promise on one half, and observes the recall on the other. Then it finds
the thresholds on the development data, as `spacy-psa calibrate --recall` does, and observes the
recall on other test data, without weights and with those of `--target`.

Results (kind "figures"): `model`; `splits`; `confidence`; `halves`, by recall: `documents` of a
half, `kept`, the share of splits whose recall is at least the promised one, `mean` and `least`, the
mean and the lowest recall; `shifts`, by test data and recall: `plain` and `weighted`, each with
`least`, the threshold, `recall` (the mean over documents), `of_all` (of all entities together) and
`shown`, the spans that are shown for each entity, or null if the data cannot support the promise,
and `weight`, the number of documents that the weighted ones count as; `needed`, the documents that
a recall of 0.99 needs.
"""

from pathlib import Path
from typing import Any

import numpy

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.analysis.conformal import observed_coverage, truth_probabilities
from spacy_psa.analysis.recall import (
    density_ratio,
    documents_needed,
    effective_size,
    features,
    recall_threshold,
)
from spacy_psa.errors import InputError
from spacy_psa.loading import load_pipeline
from spacy_psa.pipeline.chain.redaction import shown_spans
from spacy_psa.pipeline.coverage import Promise
from spacy_psa.scoring.result import read_examples

LEVELS = (0.9, 0.95, 0.97, 0.98)
TESTS = ("test", "test_clean", "test_2020")
CONFIDENCE = 0.95
FLOOR = 1e-6


def halved(documents: list[list[float]], recall: float, splits: int, seed: int) -> dict[str, Any]:
    """The recall of one half of the documents by the threshold of the other, many times."""
    draw = numpy.random.default_rng(seed)
    documents = [items for items in documents if items]
    middle, observed = len(documents) // 2, []
    for _ in range(splits):
        order = draw.permutation(len(documents))
        some = [documents[i] for i in order[:middle]]
        least = recall_threshold(some, recall, CONFIDENCE)
        observed.append(observed_coverage([documents[i] for i in order[middle:]], least) or 0.0)
    kept = sum(each >= recall for each in observed) / splits
    mean = float(numpy.mean(observed))
    return {"documents": middle, "kept": kept, "mean": mean, "least": min(observed)}


def observe(
    truths: list[list[float]], probabilities: Any, dev: list[list[float]], *promise: Any
) -> dict[str, Any] | None:
    """The recall and the cost on test data by the threshold of development data."""
    try:
        least = recall_threshold(dev, *promise)
    except InputError:
        return None
    every = [p for items in truths for p in items]
    return {
        "least": least,
        "recall": observed_coverage(truths, least),
        "of_all": sum(p >= least for p in every) / len(every),
        "shown": int((probabilities >= least).sum()) / len(every),
    }


def probable(ner: Any, examples: list[Any]) -> Any:
    """The probabilities of all spans that may be shown."""
    ner.calibrated.recall = {"": Promise(max(LEVELS), CONFIDENCE, FLOOR, len(examples))}
    sets = shown_spans(ner, [example.predicted for example in examples])
    return numpy.array([p for spans in sets for _, p in spans])


def main() -> None:
    options = script_parser(globals(), "OUT.json", "MODEL", "CORPUS")
    options.add_argument("--splits", type=int, default=200, help="number of splits (200)")
    options.add_argument("--seed", type=int, default=1, help="seed of the splits (1)")
    given = options.parse_args()
    nlp = load_pipeline(given.model)
    ner: Any = nlp.get_pipe("ner")
    files = {part: Path(given.corpus) / f"{part}.spacy" for part in ("dev", *TESTS)}
    data = {part: read_examples(nlp, path) for part, path in files.items()}
    truths = {part: truth_probabilities(ner, each) for part, each in data.items()}
    both = truths["dev"] + truths["test"]
    halves = {str(each): halved(both, each, given.splits, given.seed) for each in LEVELS}
    print(halves, flush=True)
    described = {}
    for part, each in data.items():
        for example in each:
            example.predicted.user_data |= example.reference.user_data
        described[part] = features(ner, [example.predicted for example in each])
    shifts: dict[str, Any] = {}
    for part in TESTS:
        weights = density_ratio(described["dev"], described[part])
        shifts[part] = {"weight": effective_size(weights)}
        probabilities = probable(ner, data[part])
        for recall in LEVELS:
            ask = (truths[part], probabilities, truths["dev"], recall, CONFIDENCE)
            shifts[part][str(recall)] = {"plain": observe(*ask), "weighted": observe(*ask, weights)}
            print(part, recall, shifts[part][str(recall)], flush=True)
    results = {
        "model": given.model,
        "splits": given.splits,
        "confidence": CONFIDENCE,
        "halves": halves,
        "shifts": shifts,
        "needed": documents_needed(0.99, CONFIDENCE),
    }
    write_record(given.out, "calibration", results, data=[*files.values()], seed=given.seed)


if __name__ == "__main__":
    main()
