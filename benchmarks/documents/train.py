"""Train recognisers with and without document memory, and record them.

Run this in a folder where the project's `assets` and `convert` have made the corpus. The model of
NAME and SEED is in training/documents/NAME-SEED, its record in
benchmarks/documents/results/NAME-SEED.json. For other corpora than conll2003, NAME begins with the
name of the corpus, as in ontonotes-bfloat16. The same command continues an interrupted training.

NAME is one of:

- `best`, `memory_between`, `context`, `memory`: the config of this name in configs/ner
- `no_memory_dropout`: `best` with a `memory_dropout` of 0
- `certain_0.5`, `certain_0.3`: `best` with a `max_uncertainty` of 0.5 or 0.3 in its memory
- `short_documents`: `best` for OntoNotes, with training documents cut at 250 tokens
- `smoothed`: `best` for OntoNotes with a `memory_dropout` of 0, a `label_smoothing` of 0.01,
  the decoder `mbr` and 10 passes
- `label_smoothing`: `best` with a `label_smoothing` of 0.01
- `intnet`: `best` with IntNet over the characters and the decoder `mbr`
- `sentences`: `memory` without its memory, in bfloat16
- `content_words`: `memory` with a memory of content words and a rate of 0.002
- `passes_24`: `memory` with a memory of content words and 24 passes
- `bfloat16`, `best_bfloat16`: `memory` or `best` with all products of the encoder, the memory and
  the head in bfloat16
"""

import json
from pathlib import Path

from thinc.api import Config

from benchmarks.script import script_parser
from benchmarks.systems.train import run, train_and_record

DEFAULT = "conll2003"
NER = "components.ner."
MEMORY = f"{NER}model.tok2vec."
CONTENT_WORDS = f"{MEMORY}content_words=true"
NO_DROPOUT = f"{MEMORY}memory_dropout=0.0"
SMOOTH = f"{NER}label_smoothing=0.01"
MBR = f"{NER}decode=mbr"
BFLOAT16 = [
    f"{NER}model.{part}precision=bfloat16" for part in ("", "tok2vec.", "tok2vec.tok2vec.encode.")
]
INTNET = {
    "@architectures": "spacy-psa.CharIntNet.v1", "width": 32, "kernels": 32, "growth": 16,
    "blocks": 3, "kernel_widths": [3, 5], "dropout": 0.0, "output_dropout": 0.0,
    "max_characters": 50,
}  # fmt: skip


def steps(count: int, every: int | None = None) -> list[str]:
    """Settings for a number of steps, and for the steps between evaluations."""
    settings = [f"training.max_steps={count}"]
    settings += [f"training.optimizer.learn_rate.total_steps={count}"]
    return settings + ([f"training.eval_frequency={every}"] if every else [])


RUNS: dict[str, tuple[str, list[str]]] = {
    **{name: (name, []) for name in ("best", "memory_between", "context", "memory")},
    "no_memory_dropout": ("best", [NO_DROPOUT]),
    "certain_0.5": ("best", [f"{MEMORY}max_uncertainty=0.5"]),
    "certain_0.3": ("best", [f"{MEMORY}max_uncertainty=0.3"]),
    "short_documents": ("best", ["corpora.train.max_tokens=250", *steps(64188, 5349)]),
    "smoothed": ("best", [SMOOTH, MBR, NO_DROPOUT, *steps(30780)]),
    "label_smoothing": ("best", [SMOOTH]),
    "intnet": ("best", [f"{MEMORY}tok2vec.embed.*.characters={json.dumps(INTNET)}", MBR]),
    "sentences": ("memory", BFLOAT16),
    "content_words": (
        "memory",
        [CONTENT_WORDS, "training.optimizer.learn_rate.initial_rate=0.002"],
    ),
    "passes_24": ("memory", [CONTENT_WORDS, *steps(18256, 1304)]),
    "bfloat16": ("memory", BFLOAT16),
    "best_bfloat16": ("best", BFLOAT16),
}
"""The config of each name and the settings that differ from it."""
OF_CORPUS = {"ontonotes": ["corpora.train.max_tokens=500", *steps(36936, 3078)]}
"""Its documents are long, so they are cut; one pass has 3,078 batches, and there are 12."""


def without_memory(path: Path) -> None:
    """Replace the document memory in a config file by the `tok2vec` inside it."""
    config = Config().from_disk(path, interpolate=False)
    model = config["components"]["ner"]["model"]
    model["tok2vec"] = model["tok2vec"]["tok2vec"]
    config.to_disk(path, interpolate=False)


def train(name: str, seed: int, corpus: str) -> None:
    """Train, score on test data and write the record."""
    result = f"{name}-{seed}" if corpus == DEFAULT else f"{corpus}-{name}-{seed}"
    out = Path("training", "documents", result)
    config, log = out / "config.cfg", out / "log.jsonl"
    base, changes = RUNS[name]
    parts = f"configs/ner/{base}.cfg", f"configs/corpora/{corpus}.cfg"
    changes = [*OF_CORPUS.get(corpus, ()), *changes]
    run("spacy_psa", "merge-config", *parts, config, *changes, "--log", log)
    if name == "sentences":
        without_memory(config)
    train_and_record("documents", result, out, corpus, seed)


def main() -> None:
    options = script_parser(globals())
    options.add_argument("name", choices=RUNS, metavar="NAME", help=" or ".join(RUNS))
    options.add_argument("--seed", type=int, default=1, help="seed of the training (1)")
    options.add_argument("--corpus", default=DEFAULT, help=f"folder of corpus/ ({DEFAULT})")
    given = options.parse_args()
    train(given.name, given.seed, given.corpus)


if __name__ == "__main__":
    main()
