"""Measure whether prediction sets contain the truth as often as they guarantee.

Fits the threshold of each level to the development data, as `spacy-psa calibrate --coverage` does,
and observes the coverage on test data. Then it splits the documents of the test data into halves
many times, fits the threshold to one half and observes the coverage on the other: these documents
are exchangeable, as the guarantee requires.

Results (kind "figures"): `model`; `halves`, the number of splits; and `levels`, each with `level`;
`least`, the threshold; `dev` and `test`, the observed coverage; `set_size`, spans in the sets of
test data for each gold span; `mean`, `least_of_halves` and `most_of_halves`, the coverage of the
halves.
"""

import random
from pathlib import Path
from typing import Any

import numpy

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.analysis.conformal import least_probability, observed_coverage, truth_probabilities
from spacy_psa.loading import load_pipeline
from spacy_psa.pipeline.coverage import Coverage
from spacy_psa.scoring.result import read_examples

LEVELS = (0.8, 0.9, 0.95, 0.98, 0.99)


def halved(documents: list[list[float]], level: float, halves: int, seed: int) -> list[float]:
    """The coverage of one half of the documents by the threshold of the other, many times."""
    draw = random.Random(seed)
    documents = [items for items in documents if items]
    coverages = []
    for _ in range(halves):
        draw.shuffle(documents)
        middle = len(documents) // 2
        least = least_probability(documents[:middle], level)
        observed = observed_coverage(documents[middle:], least)
        assert observed is not None
        coverages.append(observed)
    return coverages


def main() -> None:
    options = script_parser(globals(), "OUT.json", "MODEL", "DEV.spacy", "TEST.spacy")
    options.add_argument("--halves", type=int, default=1000, help="number of splits (1000)")
    options.add_argument("--seed", type=int, default=1, help="seed of the splits (1)")
    given = options.parse_args()
    nlp = load_pipeline(given.model)
    ner: Any = nlp.get_pipe("ner")
    files = {"dev": given.dev, "test": given.test}
    examples = {part: read_examples(nlp, path) for part, path in files.items()}
    truths = {part: truth_probabilities(ner, each) for part, each in examples.items()}
    gold = sum(map(len, truths["test"]))
    levels = []
    for level in LEVELS:
        least = least_probability(truths["dev"], level)
        ner.calibrated.coverage = Coverage(level, least, len(truths["dev"]))
        sets = ner.prediction_sets(example.predicted for example in examples["test"])
        halves = halved(truths["test"], level, given.halves, given.seed)
        levels.append(
            {
                "level": level,
                "least": least,
                **{part: observed_coverage(each, least) for part, each in truths.items()},
                "set_size": sum(map(len, sets)) / gold,
                "mean": float(numpy.mean(halves)),
                "least_of_halves": min(halves),
                "most_of_halves": max(halves),
            }
        )
        print(levels[-1], flush=True)
    results = {"model": Path(given.model).parent.name, "halves": given.halves, "levels": levels}
    write_record(given.out, "calibration", results, data=files.values(), seed=given.seed)


if __name__ == "__main__":
    main()
