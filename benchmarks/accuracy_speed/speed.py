"""Time all systems of the figure on the test set of CoNLL-2003, side by side.

The configs are those in the records of the F1. The weights of our systems are random, because their
work does not depend on the weights. spaCy's models are those of `train.py`, because the number of
actions of its parser depends on the predictions. Run this in the folder of `train.py`. It writes
benchmarks/accuracy_speed/results/speed.json, a record of the kind "speed".
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from thinc.api import Config

from benchmarks.lookup import Lookup
from benchmarks.record import save_record
from benchmarks.script import script_parser
from benchmarks.wrap import wrap
from spacy_psa.scoring.provenance import command


class System(NamedTuple):
    """A row of the figure, with the record of its training."""

    title: str
    record: str


OWN = "accuracy_speed"
SYSTEMS = {
    "bilstm_crf": System("BiLSTM-CRF", "conll2003/bilstm_crf"),
    "bilstm_crf-half": System("BiLSTM-CRF, half", "conll2003/bilstm_crf-half-sum"),
    "psa": System("PSA-BiLSTM", "conll2003/psa"),
    "psa-half": System("PSA-BiLSTM, half", "conll2003/psa-half-sum"),
    "psa_arxiv": System("PSA-BiLSTM, arXiv version, half", "systems/conll2003-psa_arxiv"),
    "psa_transformer": System("PSA-Transformer", "systems/conll2003-psa_transformer"),
    "tener": System("TENER", "systems/conll2003-tener-75_epochs"),
    "transformer": System("Transformer", "systems/conll2003-transformer"),
    "idcnn": System("ID-CNN", "systems/conll2003-idcnn"),
    "cross": System("Cross-BiLSTM", "systems/conll2003-cross"),
    "self_attentive": System("Self-attentive BiLSTM", "systems/conll2003-self_attentive"),
    "spacy-efficiency": System("spaCy ner, efficiency", f"{OWN}/spacy-efficiency"),
    "spacy-accuracy": System("spaCy ner, accuracy", f"{OWN}/spacy-accuracy"),
}
"""By the name of the row in results/speed.json."""
CORPUS = Path("corpus/conll2003")
FOLDER = Path("training", OWN)


def rows() -> list[str]:
    """Write the configs; return the arguments NAME=PATH of `spacy-psa benchmark speed`."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, system in SYSTEMS.items():
        path = Path("training", name, "model-best")
        if not system.record.startswith(OWN):
            path = FOLDER / f"{name}.cfg"
            Config(*Lookup(OWN).raw(f"{system.record}:config")).to_disk(path)
        paths.append(f"{name}={path}")
    return paths


def main() -> None:
    options = script_parser(globals())
    options.add_argument("--repeats", type=int, default=5, help="runs of each system (5)")
    given = options.parse_args()
    output = FOLDER / "speed"
    measure = [sys.executable, "-m", "spacy_psa", "benchmark", "speed", str(CORPUS / "test.spacy")]
    data = ["--train", str(CORPUS / "train.spacy"), "--vectors", str(CORPUS / "vectors")]
    data += ["--section", "annotation", "--words", "46435", "--repeats", str(given.repeats)]
    subprocess.run([*measure, *rows(), *data, "--output", str(output)], check=True)
    product = json.loads(output.with_suffix(".json").read_text(encoding="utf8"))
    save_record(wrap({**product, "command": command()}, OWN, "speed"))


if __name__ == "__main__":
    main()
