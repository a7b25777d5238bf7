"""Train recognizers with and without document memory, and record them.

Run this in a folder whose `assets` and `convert` have made the corpus. The model of NAME and SEED
is written to training/documents/NAME-SEED, its record to
benchmarks/documents/results/NAME-SEED.json; with another corpus than conll2003, NAME begins with
its name, as in ontonotes-bfloat16. A training that was cut short goes on where it was.

NAME is one of:

- `best`: configs/ner/best.cfg as it is.
- `no_memory_dropout`: the same with a `memory_dropout` of 0.
- `certain_0.5`, `certain_0.3`: `best` with a `max_uncertainty` of 0.5 or 0.3 in its memory.
- `short_documents`: `best` for OntoNotes, with training documents cut at 250 tokens, so that a step
  has 203 words in the mean.
- `smoothed`: `best` for OntoNotes with a `memory_dropout` of 0, a `label_smoothing` of 0.01,
  entities of the highest expected F1 (`mbr`), and 10 passes.
- `label_smoothing`: `best` with a `label_smoothing` of 0.01.
- `intnet`: `best` with IntNet over the characters, and entities of the highest expected F1 (`mbr`).
- `memory_between`: configs/ner/memory_between.cfg as it is.
- `context`: configs/ner/context.cfg as it is.
- `memory`: configs/ner/memory.cfg as it is. The rest begins with this config:
- `sentences`: the same without its memory, in bfloat16.
- `content_words`: with a memory of content words alone, and a rate of 0.002.
- `passes_24`: with a memory of content words, and 24 passes.
- `bfloat16`: with all products of the encoder, the memory and the head in bfloat16.
"""

import json
from pathlib import Path

from thinc.api import Config

from benchmarks.script import script_parser
from benchmarks.systems.train import run, train_and_record

CERTAIN = {f"certain_{most}": most for most in (0.5, 0.3)}
"""The `max_uncertainty` of each of these names."""
AS_IT_IS = ("best", "memory_between", "context", "memory")
CHANGED = ("passes_24", "sentences", "content_words", "bfloat16")
"""Those that begin with memory.cfg."""
BASES = {name: name for name in AS_IT_IS}
BASES |= dict.fromkeys(
    ("no_memory_dropout", "short_documents", "smoothed", "label_smoothing", "intnet", *CERTAIN),
    "best",
)
BASES |= dict.fromkeys(CHANGED, "memory")
"""The config in configs/ner that each name begins with."""
IN_BFLOAT16 = ("sentences", "bfloat16")
DEFAULT = "conll2003"
CONTENT_WORDS = (
    "components.ner.model.tok2vec.content_words=true",
    "training.optimizer.learn_rate.initial_rate=0.002",
)
PASSES_24 = (
    "components.ner.model.tok2vec.content_words=true",
    "training.eval_frequency=1304",
    "training.max_steps=18256",
    "training.optimizer.learn_rate.total_steps=18256",
)
SHORT_DOCUMENTS = (
    "corpora.train.max_tokens=250",
    "training.eval_frequency=5349",
    "training.max_steps=64188",
    "training.optimizer.learn_rate.total_steps=64188",
)
SMOOTHED = (
    "components.ner.label_smoothing=0.01",
    "components.ner.decode=mbr",
    "components.ner.model.tok2vec.memory_dropout=0.0",
    "training.max_steps=30780",
    "training.optimizer.learn_rate.total_steps=30780",
)
INTNET = {
    "@architectures": "spacy-psa.CharIntNet.v1", "width": 32, "kernels": 32, "growth": 16,
    "blocks": 3, "kernel_widths": [3, 5], "dropout": 0.0, "output_dropout": 0.0,
    "max_characters": 50,
}  # fmt: skip
OF_NAME = {
    "intnet": (
        f"components.ner.model.tok2vec.tok2vec.embed.*.characters={json.dumps(INTNET)}",
        "components.ner.decode=mbr",
    ),
    "no_memory_dropout": ("components.ner.model.tok2vec.memory_dropout=0.0",),
    "short_documents": SHORT_DOCUMENTS,
    "smoothed": SMOOTHED,
    "label_smoothing": ("components.ner.label_smoothing=0.01",),
    **{
        name: (f"components.ner.model.tok2vec.max_uncertainty={most}",)
        for name, most in CERTAIN.items()
    },
    "content_words": CONTENT_WORDS,
    "passes_24": PASSES_24,
}
OF_CORPUS = {
    "ontonotes": (
        "corpora.train.max_tokens=500",
        "training.eval_frequency=3078",
        "training.max_steps=36936",
        "training.optimizer.learn_rate.total_steps=36936",
    )
}
"""Its documents are long, so they are cut, and one pass has 3,078 batches; 12 passes."""
PARTS = ("", "tok2vec.", "tok2vec.tok2vec.encode.")
"""The head, the memory and the encoder in the model of the config."""


def without_memory(path: Path) -> None:
    """Replace the document memory in a config file by what it stands around."""
    config = Config().from_disk(path, interpolate=False)
    model = config["components"]["ner"]["model"]
    model["tok2vec"] = model["tok2vec"]["tok2vec"]
    config.to_disk(path, interpolate=False)


def train(name: str, seed: int, corpus: str) -> None:
    """Train, score on test data and write the record."""
    result = f"{name}-{seed}" if corpus == DEFAULT else f"{corpus}-{name}-{seed}"
    out = Path("training", "documents", result)
    config, log = out / "config.cfg", out / "log.jsonl"
    settings = f"configs/corpora/{corpus}.cfg"
    base = f"configs/ner/{BASES[name]}.cfg"
    changes = list(OF_CORPUS.get(corpus, ()))
    if name in IN_BFLOAT16:
        changes += [f"components.ner.model.{part}precision=bfloat16" for part in PARTS]
    changes += OF_NAME.get(name, ())
    run("spacy_psa", "merge-config", base, settings, config, *changes, "--log", log)
    if name == "sentences":
        without_memory(config)
    train_and_record("documents", result, out, corpus, seed)


def main() -> None:
    options = script_parser("benchmarks.documents.train", __doc__)
    options.add_argument("name", choices=BASES, metavar="NAME", help=" or ".join(BASES))
    options.add_argument("--seed", type=int, default=1, help="seed of the training (1)")
    options.add_argument("--corpus", default=DEFAULT, help=f"folder of corpus/ ({DEFAULT})")
    given = options.parse_args()
    train(given.name, given.seed, given.corpus)


if __name__ == "__main__":
    main()
