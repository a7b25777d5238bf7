"""Train spaCy's `ner` with its quickstart configs on CoNLL-2003, and record it.

The config is that of `spacy init config --pipeline ner --optimize KIND`. "accuracy" has the vectors
of the corpus instead of those of en_core_web_lg. spaCy's patience ends the training. Run this in a
folder where the project's `assets` and `convert` have made the corpus. The model is in
training/spacy-KIND, the record in benchmarks/accuracy_speed/results/spacy-KIND.json.
"""

from pathlib import Path

from spacy.cli.init_config import init_config

from benchmarks.accuracy_speed.speed import OWN
from benchmarks.cased_vectors import cased_vectors
from benchmarks.script import script_parser
from benchmarks.systems.train import log_to, record_test, run

CORPUS = Path("corpus/conll2003")


def train(kind: str, seed: int) -> None:
    """Train with a config, score the best model on test data and write the record."""
    out = Path("training", f"spacy-{kind}")
    out.mkdir(parents=True)
    config = init_config(lang="en", pipeline=["ner"], optimize=kind, gpu=False)
    config["paths"]["train"] = str(CORPUS / "train.spacy")
    config["paths"]["dev"] = str(CORPUS / "dev.spacy")
    config["paths"]["vectors"] = None
    if kind == "accuracy":
        vectors = cased_vectors(CORPUS / "vectors", Path("training/spacy-vectors"))
        config["paths"]["vectors"] = str(vectors)
    config["initialize"]["vectors"] = "${paths.vectors}"
    config["system"]["seed"] = seed
    log_to(config, out / "log.jsonl")
    config.to_disk(out / "config.cfg")
    run("spacy", "train", out / "config.cfg", "--output", out)
    record_test(OWN, out.name, out, CORPUS / "test.spacy", CORPUS)


def main() -> None:
    options = script_parser(globals())
    options.add_argument("kinds", nargs="+", choices=["efficiency", "accuracy"])
    options.add_argument("--seed", type=int, default=0, help="seed of the training (0)")
    given = options.parse_args()
    for kind in given.kinds:
        train(kind, given.seed)


if __name__ == "__main__":
    main()
