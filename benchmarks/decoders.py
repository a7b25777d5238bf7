"""Score the most probable entities of models, and those of the highest expected F1, and record it.

    python -m benchmarks.decoders documents corpus/conll2003 \\
        training/documents/best-1/model-best training/documents/best-2/model-best

The record benchmarks/EXPERIMENT/results/NAME.json (kind "figures") has `models`: for each model its
`path`, and for the decoders `viterbi` and `mbr` of its entity recogniser the F1 on `dev` and
`test` data, as a fraction of 1.
"""

import argparse
from pathlib import Path
from typing import Any

from spacy.language import Language

from benchmarks.record import FOLDER, write_record
from spacy_psa.corpora.docbin import codecs_known
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.result import read_examples

DECODERS = ("viterbi", "mbr")
PARTS = ("dev", "test")
PIPE, METRIC = "ner", "ents_f"


def measure(nlp: Language, data: Path) -> dict[str, dict[str, float]]:
    """Score a pipeline with each decoder."""
    pipe: Any = nlp.get_pipe(PIPE)
    found: dict[str, dict[str, float]] = {decoder: {} for decoder in DECODERS}
    for part in PARTS:
        with codecs_known():
            examples = read_examples(nlp, data / f"{part}.spacy")
        for decoder in DECODERS:
            pipe.decoding = decoder
            found[decoder][part] = nlp.evaluate(examples)[METRIC]
    return found


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.decoders",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("experiment", metavar="EXPERIMENT", help="folder of benchmarks/")
    found.add_argument("data", type=Path, metavar="DATA", help="folder with dev and test data")
    found.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="trained pipeline")
    found.add_argument("--name", default="decoders", help="of the record (decoders)")
    return found


def main() -> None:
    given = parser().parse_args()
    rows = []
    for path in given.models:
        rows.append({"path": str(path), **measure(load_pipeline(str(path)), given.data)})
        print(rows[-1], flush=True)
    write_record(
        FOLDER / given.experiment / "results" / f"{given.name}.json",
        given.experiment,
        {"models": rows},
        data=[given.data / f"{part}.spacy" for part in PARTS],
    )


if __name__ == "__main__":
    main()
