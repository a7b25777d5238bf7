"""Train recognisers over pretrained encoders, and record them.

Run this in a folder where the project's `assets` and `convert` have made the corpus. The encoders
are folders of Hugging Face in encoders/, such as encoders/all-mpnet-base-v2. The model of NAME and
SEED is in training/pretrained/NAME-SEED, its record in
benchmarks/pretrained/results/NAME-SEED.json. The same command continues an interrupted training.

NAME is one of:

- `frozen_mpnet`, `frozen_minilm`: configs/ner/frozen.cfg, with features of all-mpnet-base-v2 or
  all-MiniLM-L6-v2
- `frozen_mpnet_half`: `frozen_mpnet` with half of the units in the BiLSTM
- `frozen_mpnet_chunks`: configs/chunker/frozen.cfg, for CoNLL-2000
- `frozen_mpnet_tags`: configs/tagger/frozen.cfg, for the corpus wsj
- `frozen_mpnet_trees`: configs/parser/frozen.cfg with fewer passes, for the corpus wsj_trees
- `only_psa`, `only_tener`, `only_bilstm`, `only_crf`: `frozen_mpnet` without word vectors,
  characters and memory of the document: only the encoder's features, below PSA-BiLSTM, TENER, a
  BiLSTM, or directly below the CRF
- `finetuned_mpnet`, `finetuned_minilm`: configs/ner/pretrained.cfg
- `spacy_minilm`: spaCy's `ner` over spacy-transformers, for as many steps as `finetuned_minilm`
- `shared`: configs/shared/pretrained.cfg with all-MiniLM-L6-v2 and 3 passes, for GUM
- `shared_8_passes`: the same with 8 passes
- `shared_tagger`, `shared_chunker`, `shared_ner`, `shared_parser`: `shared` with one of the
  components
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.script import script_parser
from benchmarks.systems.train import run, train_and_record

TOK2VEC = "components.ner.model.tok2vec.tok2vec."
MPNET = ["paths.encoder=encoders/all-mpnet-base-v2"]
MINILM = ["paths.encoder=encoders/all-MiniLM-L6-v2"]
SIX_LAYERS = [f"{TOK2VEC}embed.*.encoder.layers=[[3,4,5,6],[1,2]]"]
HALF = [f"{TOK2VEC}encode.hidden=100", f"{TOK2VEC}embed.*.characters.hidden=50"]
CACHE = ["paths.cache=training/pretrained/cache"]


def shared(passes: int) -> list[str]:
    """Settings of the shared config for GUM in parts of about 500 words, evaluated each pass."""
    steps = 355 * passes + 1
    return [
        *MINILM,
        "shared.width=588",
        "corpora.train.max_tokens=500",
        f"training.max_steps={steps}",
        "training.eval_frequency=355",
        f"training.optimizer.learn_rate.total_steps={steps}",
        f"training.optimizer.learn_rate.warmup_steps={round(steps / 10)}",
    ]


def only(encode: dict[str, Any] | None) -> list[str]:
    """Settings of the frozen config with only the encoder's features, and an encoder above them."""
    embed = {
        "@architectures": "spacy-psa.Pretrained.v1",
        "name": "${paths.encoder}",
        "layers": [[9, 10, 11, 12], [5, 6, 7, 8]],
        "project": 200,
        "frozen": True,
        "cache": "${paths.cache}",
    }
    above = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    model = embed if encode is None else above
    return [f"components.ner.model.tok2vec={json.dumps(model)}"]


LSTM = {"hidden": 200, "input_dropout": 0.55, "precision": "auto"}
PSA = {**LSTM, "@architectures": "spacy-psa.PSABiLSTM.v1", "lstm_output_dropout": 0.55}
TENER = {
    "@architectures": "spacy-psa.TENER.v1",
    "heads": 4,
    "head_width": 50,
    "input_dropout": 0.3,
    "output_dropout": 0.4,
    "precision": "auto",
}
BILSTM = {**LSTM, "@architectures": "spacy-psa.BiLSTM.v1", "output_dropout": 0.55}

TASKS = "tagger", "chunker", "ner", "parser"

RUNS: dict[str, tuple[str, list[str]]] = {
    "frozen_mpnet": ("configs/ner/frozen.cfg", [*CACHE, *MPNET]),
    "frozen_mpnet_half": ("configs/ner/frozen.cfg", [*CACHE, *MPNET, *HALF]),
    "frozen_minilm": ("configs/ner/frozen.cfg", [*CACHE, *MINILM, *SIX_LAYERS]),
    "frozen_mpnet_chunks": ("configs/chunker/frozen.cfg", [*CACHE, *MPNET]),
    "frozen_mpnet_tags": ("configs/tagger/frozen.cfg", [*CACHE, *MPNET]),
    "frozen_mpnet_trees": (
        "configs/parser/frozen.cfg",
        [
            *CACHE,
            *MPNET,
            "paths.vectors=corpus/wsj/vectors",
            "training.eval_frequency=692",
            "training.optimizer.learn_rate.total_steps=5537",
        ],
    ),
    "only_psa": ("configs/ner/frozen.cfg", [*CACHE, *MPNET, *only(PSA)]),
    "only_tener": ("configs/ner/frozen.cfg", [*CACHE, *MPNET, *only(TENER)]),
    "only_bilstm": ("configs/ner/frozen.cfg", [*CACHE, *MPNET, *only(BILSTM)]),
    "only_crf": ("configs/ner/frozen.cfg", [*CACHE, *MPNET, *only(None)]),
    "finetuned_mpnet": ("configs/ner/pretrained.cfg", MPNET),
    "finetuned_minilm": ("configs/ner/pretrained.cfg", MINILM),
    "spacy_minilm": ("benchmarks/pretrained/spacy_transformer.cfg", MINILM),
    "shared": ("configs/shared/pretrained.cfg", shared(3)),
    "shared_8_passes": ("configs/shared/pretrained.cfg", shared(8)),
    **{
        f"shared_{task}": (
            "configs/shared/pretrained.cfg",
            [*shared(3), f'nlp.pipeline=["tok2vec","{task}"]'],
        )
        for task in TASKS
    },
}
"""The config of each name and the settings that differ from it."""


def train(name: str, seed: int, corpus: str) -> None:
    """Train, score on test data and write the record."""
    result = f"{name}-{seed}" if corpus == "conll2003" else f"{corpus}-{name}-{seed}"
    out = Path("training", "pretrained", result)
    config, log = out / "config.cfg", out / "log.jsonl"
    base, changes = RUNS[name]
    parts = base, f"configs/corpora/{corpus}.cfg"
    run("spacy_psa", "merge-config", *parts, config, *changes, "--log", log)
    train_and_record("pretrained", result, out, corpus, seed)


def main() -> None:
    options = script_parser(globals())
    options.add_argument("name", choices=RUNS, metavar="NAME", help=" or ".join(RUNS))
    options.add_argument("--seed", type=int, default=1, help="seed of the training (1)")
    options.add_argument("--corpus", default="conll2003", help="folder of corpus/ (conll2003)")
    given = options.parse_args()
    train(given.name, given.seed, given.corpus)


if __name__ == "__main__":
    main()
