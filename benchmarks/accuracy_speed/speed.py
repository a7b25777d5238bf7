"""Time all systems of the figure on the test set of CoNLL-2003, side by side.

The configs are those of the records that hold the F1, so what is timed is what was scored. The
weights of our systems are random, spaCy's models are those that `train.py` has trained: the number
of actions of its parser depends on what it predicts, the work of our systems does not. Run this
where `train.py` ran. It writes benchmarks/accuracy_speed/results/speed.json, a record of the kind
"speed".
"""

import json
import subprocess
import sys
from pathlib import Path

from thinc.api import Config

from benchmarks.accuracy_speed.systems import OWN, SYSTEMS
from benchmarks.lookup import Lookup
from benchmarks.record import place_of, save_record
from benchmarks.script import script_parser
from benchmarks.wrap import wrap
from spacy_psa.scoring.provenance import command

CORPUS = Path("corpus/conll2003")
FOLDER = Path("training", OWN)


def rows() -> list[str]:
    """Write the configs; return the arguments NAME=PATH of `spacy-psa benchmark speed`."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = []
    for name, system in SYSTEMS.items():
        path = Path("training", name, "model-best")
        if system.experiment != OWN:
            path = FOLDER / f"{name}.cfg"
            Config(*Lookup(OWN).raw(f"{system.record}:config")).to_disk(path)
        found.append(f"{name}={path}")
    return found


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
    record = wrap({**product, "command": command()}, OWN, "speed")
    save_record(record, place_of(record))


if __name__ == "__main__":
    main()
