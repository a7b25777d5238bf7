"""The systems of this experiment as training configs.

All have the inputs, the optimizer and the learning rates of configs/spans/best.cfg:

- `tree`: that config, with its memory of the document
- `bilstm`: configs/spans/bilstm.cfg, which has a BiLSTM instead of PSA-BiLSTM, and no memory

The others have the encoder of `tree` and differ in what finds the spans:

- `sentences`: `crf_spans` without the memory, as all that follow
- `layered`: the same with `layers = "label"`, so that spans of different labels may overlap
- `ngram`: spaCy's `spancat`, which decides about each span of 1 to 12 tokens
- `finder`: spaCy's `spancat`, which decides about the spans that spaCy's `span_finder` suggests;
  each with its own encoder
- `frozen`: configs/spans/frozen.cfg without the memory, over all-MiniLM-L6-v2, which reads single
  sentences
- `frozen_finder`: `finder` with these vectors
"""

from pathlib import Path
from typing import Any

from thinc.api import Config

CONFIGS = Path("configs/spans")
OTHER = {"bilstm": "bilstm.cfg", "frozen": "frozen.cfg", "frozen_finder": "frozen.cfg"}
"""The systems that are not made from best.cfg."""
KEY = "sc"
LONGEST = 12
"""The most tokens of the spans that `ngram` decides about."""
ENCODER = Path("encoders/all-MiniLM-L6-v2")
SYSTEMS = ("tree", "bilstm", "sentences", "layered", "ngram", "finder", "frozen", "frozen_finder")


def config_of(system: str, corpus: Path, train: Path, vectors: Path, seed: int) -> Config:
    """Make the config of a system, for the development data of a corpus."""
    config = Config().from_disk(CONFIGS / OTHER.get(system, "best.cfg"), interpolate=False)
    paths = {"train": train, "dev": corpus / "dev.spacy", "vectors": vectors}
    config["paths"].update({name: str(path) for name, path in paths.items()})
    config["system"]["seed"] = seed
    if system in ("tree", "bilstm"):
        return config
    ours = config["components"]["spans"]["model"]
    ours["tok2vec"] = encoder = ours["tok2vec"]["tok2vec"]  # without the memory
    for part in ("train", "dev"):
        config["corpora"][part] = {
            "@readers": "spacy-psa.DocumentCorpus.v1",
            "path": f"${{paths.{part}}}",
            "max_tokens": 1,  # a doc for each sentence
        }
    if system.startswith("frozen"):
        config["paths"].update(encoder=str(ENCODER), cache="training/spans/cache")
        encoder["embed"]["*"]["encoder"]["layers"] = [[4, 5, 6], [1, 2, 3]]  # of its 6
    if system == "layered":
        config["components"]["spans"].update(layers="label", unfitting="drop")
    elif system not in ("sentences", "frozen"):
        finders = {} if system == "ngram" else {"span_finder": span_finder(encoder)}
        categorizer = spancat(encoder, system.removeprefix("frozen_"))
        config["components"] = {**finders, "spancat": categorizer}
        config["training"]["annotating_components"] = list(finders)
        config["nlp"]["pipeline"] = list(config["components"])
    return config


def spancat(encoder: dict[str, Any], system: str) -> dict[str, Any]:
    """The settings of spaCy's `spancat`, which are its own apart from the encoder."""
    suggester = {
        "ngram": {"@misc": "spacy.ngram_range_suggester.v1", "min_size": 1, "max_size": LONGEST},
        "finder": {"@misc": "spacy.preset_spans_suggester.v1", "spans_key": KEY},
    }
    model = {
        "@architectures": "spacy.SpanCategorizer.v1",
        "tok2vec": encoder,
        "reducer": {"@layers": "spacy.mean_max_reducer.v1", "hidden_size": 128},
        "scorer": {"@layers": "spacy.LinearLogistic.v1", "nO": None, "nI": None},
    }
    return {
        "factory": "spancat", "spans_key": KEY, "threshold": 0.5,
        "suggester": suggester[system], "model": model,
    }  # fmt: skip


def span_finder(encoder: dict[str, Any]) -> dict[str, Any]:
    """The settings of spaCy's `span_finder`, with an encoder of its own.

    It suggests nothing at first, and without suggestions `spancat` passes no gradient on. If
    `spancat` were the last to listen to a shared encoder, that would never learn.
    """
    model = {
        "@architectures": "spacy.SpanFinder.v1",
        "tok2vec": encoder,
        "scorer": {"@layers": "spacy.LinearLogistic.v1", "nO": 2, "nI": None},
    }
    return {
        "factory": "span_finder", "spans_key": KEY, "threshold": 0.5, "max_length": 30,
        "model": model,
    }  # fmt: skip
