"""Join the models of several seeds, score the joined pipeline, and record its scores.

    python -m benchmarks.joined documents corpus/conll2003 \\
        training/documents/memory-1/model-best training/documents/memory-2/model-best

The joined pipeline is in training/EXPERIMENT/NAME. The record
benchmarks/EXPERIMENT/results/NAME.json (kind "figures") has the number of `models` and the scores
`dev` and `test` of the joined pipeline. The metric is the one that chose the evaluations of the
trainings.
"""

from pathlib import Path

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.systems.train import run
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.result import read_examples

PARTS = ("dev", "test")


def measure(models: list[Path], joined: Path, data: Path) -> dict[str, float]:
    """Join models, if that is not done yet, and score them together on dev and test data."""
    if not joined.exists():
        run("spacy_psa", "ensemble", *models, "--output", joined)
    nlp = load_pipeline(str(joined))
    weights = nlp.config["training"]["score_weights"]
    metric = max(weights, key=lambda name: weights[name] or 0.0)
    examples = {part: read_examples(nlp, data / f"{part}.spacy") for part in PARTS}
    return {part: nlp.evaluate(given)[metric] for part, given in examples.items()}


def main() -> None:
    options = script_parser(globals())
    options.add_argument("experiment", metavar="EXPERIMENT", help="folder of benchmarks/")
    options.add_argument("data", type=Path, metavar="DATA", help="folder with dev and test data")
    options.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="trained pipeline")
    options.add_argument("--name", default="ensemble", help="of pipeline and record (ensemble)")
    given = options.parse_args()
    joined = Path("training", given.experiment, given.name)
    scores = measure(given.models, joined, given.data)
    data = [given.data / f"{part}.spacy" for part in PARTS]
    results = {"models": len(given.models), **scores}
    write_record(given.name, given.experiment, results, data=data)


if __name__ == "__main__":
    main()
