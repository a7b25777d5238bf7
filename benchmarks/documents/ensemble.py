"""Join the models of several seeds, score them together, and record it.

Run this in the folder where `benchmarks.documents.train memory` has trained the seeds. Writes
benchmarks/documents/results/ensemble.json (kind "figures"): `seeds`, and `dev` and `test` (F1) of
the joined pipeline.
"""

import argparse
from pathlib import Path

from benchmarks.documents.train import RESULTS
from benchmarks.record import write_record
from benchmarks.systems.train import run
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.result import read_examples


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.documents.ensemble",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    found.add_argument("--corpus", default="conll2003", help="folder of corpus/ (conll2003)")
    return found


def main() -> None:
    given = parser().parse_args()
    trained, data = Path("training", "documents"), Path("corpus", given.corpus)
    joined = trained / f"ensemble-{'-'.join(map(str, given.seeds))}"
    if not joined.exists():
        models = [trained / f"memory-{seed}" / "model-best" for seed in given.seeds]
        run("spacy_psa", "ensemble", *models, "--output", joined)
    nlp = load_pipeline(str(joined))
    files = {part: data / f"{part}.spacy" for part in ("dev", "test")}
    scores = {
        part: nlp.evaluate(read_examples(nlp, path))["ents_f"] for part, path in files.items()
    }
    results = {"seeds": given.seeds, **scores}
    write_record(RESULTS / "ensemble.json", "documents", results, data=files.values())


if __name__ == "__main__":
    main()
