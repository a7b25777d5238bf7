"""How much of the calibration error on test data any map fitted to development data leaves.

usage: python benchmarks/calibration_shift.py MODEL DEV.spacy TEST.spacy OUT.json [--pipe NAME]

MODEL has been calibrated (`spacy-psa calibrate`). A temperature is one way to map confidences
to better ones. Isotonic regression (scikit-learn) fits the best of all monotone maps to the
development data's predicted spans, so what it leaves on test data is a difference between
the two sets and not of the temperature: a span of the same confidence is right less often.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import spacy
import torch
from record import write_record
from sklearn.isotonic import IsotonicRegression
from spacy.language import Language
from spacy.training import Example

from spacy_psa.scoring.calibration import Judged, calibration_error, judge, reliability
from spacy_psa.scoring.result import read_examples


def judged(nlp: Language, pipe: str, path: Path) -> Judged:
    """The predicted entities of a file with their confidences, and which are right."""
    examples = read_examples(nlp, path)
    docs = nlp.pipe(eg.predicted.copy() for eg in examples)
    found = [Example(doc, eg.reference) for doc, eg in zip(docs, examples, strict=True)]
    return judge(found, pipe)


def figures(found: Judged) -> dict[str, float | int | None]:
    return {
        "spans": len(found.right),
        "mean_confidence": float(found.confidence.mean()),
        "precision": float(found.right.mean()),
        "ece": calibration_error(reliability(found)),
    }


def main(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    settings: dict[str, Any] = {"components": {arguments.pipe: {"confidence": True}}}
    nlp = spacy.load(arguments.model, config=settings)
    component: Any = nlp.get_pipe(arguments.pipe)
    dev, test = (judged(nlp, arguments.pipe, path) for path in (arguments.dev, arguments.test))
    isotonic = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    isotonic.fit(dev.confidence, dev.right)
    mapped = [
        found._replace(confidence=isotonic.predict(found.confidence)) for found in (dev, test)
    ]
    record = {
        "temperature": component.temperature,
        "by_temperature": {"dev": figures(dev), "test": figures(test)},
        "by_isotonic_regression": dict(zip(("dev", "test"), map(figures, mapped))),
    }
    write_record(arguments.out, record, [arguments.dev, arguments.test])
    for by in ("by_temperature", "by_isotonic_regression"):
        print(by, json.dumps(record[by]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    for name in ("dev", "test", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--pipe", default="ner")
    main(parser.parse_args())
