"""Measure how much of the calibration error on test data a map fitted to development data leaves.

MODEL has been calibrated by `spacy-psa calibrate`. A temperature is one way to map confidences to
better ones. Isotonic regression of scikit-learn fits the best of all monotone maps to the spans
that are predicted on development data. The error that it leaves on test data is therefore a
difference between the two sets, and not the fault of the temperature: spans of the same confidence
are right less often.

Results (kind "figures"): `temperature`; `by_temperature` and `by_isotonic_regression`, each
{`dev` and `test`: {`spans`, `mean_confidence`, `precision`, `ece`}}.
"""

import json
from pathlib import Path
from typing import Any

import spacy
import torch
from sklearn.isotonic import IsotonicRegression
from spacy.language import Language
from spacy.training import Example

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.scoring.calibration import Judged, calibration_error, judge, reliability
from spacy_psa.scoring.result import read_examples


def judged(nlp: Language, pipe: str, path: Path) -> Judged:
    """The predicted entities of a file, with their confidences and whether they are right."""
    examples = read_examples(nlp, path)
    docs = nlp.pipe(eg.predicted.copy() for eg in examples)
    pairs = zip(docs, examples, strict=True)
    return judge([Example(doc, eg.reference) for doc, eg in pairs], pipe)


def figures(spans: Judged) -> dict[str, float | int | None]:
    return {
        "spans": len(spans.right),
        "mean_confidence": float(spans.confidence.mean()),
        "precision": float(spans.right.mean()),
        "ece": calibration_error(reliability(spans)),
    }


def measure(model: str, pipe: str, dev_path: Path, test_path: Path) -> dict[str, Any]:
    """The figures by both maps, of a pipeline that was calibrated on `dev_path`."""
    settings: dict[str, Any] = {"components": {pipe: {"confidence": True}}}
    nlp = spacy.load(model, config=settings)
    component: Any = nlp.get_pipe(pipe)
    dev, test = (judged(nlp, pipe, path) for path in (dev_path, test_path))
    isotonic = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    isotonic.fit(dev.confidence, dev.right)
    mapped = [each._replace(confidence=isotonic.predict(each.confidence)) for each in (dev, test)]
    return {
        "temperature": component.temperature,
        "by_temperature": {"dev": figures(dev), "test": figures(test)},
        "by_isotonic_regression": dict(zip(("dev", "test"), map(figures, mapped))),
    }


def main() -> None:
    options = script_parser(globals(), "MODEL", "DEV.spacy", "TEST.spacy", "OUT.json")
    options.add_argument("--pipe", default="ner", help="component whose confidences are read (ner)")
    given = options.parse_args()
    torch.set_num_threads(1)
    results = measure(given.model, given.pipe, given.dev, given.test)
    for by in ("by_temperature", "by_isotonic_regression"):
        print(by, json.dumps(results[by]))
    write_record(given.out, "calibration", results, data=[given.dev, given.test])


if __name__ == "__main__":
    main()
