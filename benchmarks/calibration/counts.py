"""Measure how often intervals of counts contain the true number.

Corrects counts on the documents of a file, as `spacy-psa calibrate --counts` does. Then it draws
corpora of 20 documents from a test file many times, and compares each interval with the true
number.

Results (kind "figures"): `model`, `draws`, `size`, and `rows`, by "calibration to test" ("none to
test" without a correction): `held`, the share of draws whose interval has the true number, by label
and kind; `mentions` and `distinct`, the means of `held` over labels; `least`, the least of all.
"""

from pathlib import Path
from typing import Any

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.analysis.counts import KINDS, SIZE, counted, coverage, fit_corrections
from spacy_psa.loading import load_pipeline

DRAWS = 1000
PAIRS = (
    ("none", "test"),
    ("dev", "test"),
    ("none", "test_clean"),
    ("dev", "test_clean"),
    ("dev_clean", "test_clean"),
    ("dev_clean", "test_2020"),
)


def main() -> None:
    options = script_parser(globals(), "OUT.json", "MODEL", "CORPUS")
    given = options.parse_args()
    nlp = load_pipeline(given.model)
    ner: Any = nlp.get_pipe("ner")
    files = {part: Path(given.corpus) / f"{part}.spacy" for part in sorted({*sum(PAIRS, ())})}
    del files["none"]
    data = {part: counted(nlp, ner, path) for part, path in files.items()}
    rows = {}
    for calibration, test in PAIRS:
        fitted = calibration in data
        corrections = fit_corrections(data[calibration], ner.labels) if fitted else None
        held = coverage(data[test], corrections, ner.labels, draws=DRAWS)
        means = {kind: sum(each[kind] for each in held.values()) / len(held) for kind in KINDS}
        least = min(value for each in held.values() for value in each.values())
        rows[f"{calibration} to {test}"] = {"held": held, **means, "least": least}
    results = {"model": given.model, "draws": DRAWS, "size": SIZE, "rows": rows}
    write_record(Path(given.out), "calibration", results, data=[*files.values()], seed=0)


if __name__ == "__main__":
    main()
