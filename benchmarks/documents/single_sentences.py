"""Score models with a document memory on whole documents and on single sentences.

Each MODEL is a folder of `benchmarks.documents.train`, training/documents/NAME-SEED. In a single
sentence, a token only sees that sentence.

The record benchmarks/documents/results/NAME.json has `models`: {NAME-SEED: {`dev` and `test`:
{`documents` and `sentences`: F1 as a fraction of 1}}}. A record also has the models of earlier
commands.
"""

from pathlib import Path

import spacy
import torch
from spacy.language import Language
from spacy.training import Corpus

from benchmarks.record import read_record, write_record
from benchmarks.script import script_parser
from spacy_psa.scoring.result import read_examples

RESULTS = Path(__file__).parent / "results"
PARTS = ("dev", "test")


def score(nlp: Language, path: Path) -> dict[str, float]:
    """F1 on a file, read in both ways: spaCy's own reader does not keep documents."""
    ways = {
        "documents": read_examples(nlp, path),
        "sentences": list(Corpus(path, gold_preproc=False)(nlp)),
    }
    return {way: nlp.evaluate(given, batch_size=256)["ents_f"] for way, given in ways.items()}


def main() -> None:
    options = script_parser(globals(), "CORPUS")
    options.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="folders of models")
    options.add_argument("--name", default="single_sentences", help="of the record (%(default)s)")
    given = options.parse_args()
    torch.set_num_threads(1)
    data = [given.corpus / f"{part}.spacy" for part in PARTS]
    result = RESULTS / f"{given.name}.json"
    models = read_record(result)["results"]["models"] if result.exists() else {}
    for folder in given.models:
        nlp = spacy.load(folder / "model-best")
        models[folder.name] = {path.stem: score(nlp, path) for path in data}
        print(folder.name, models[folder.name], flush=True)
    write_record(result, "documents", {"models": models}, data=data)


if __name__ == "__main__":
    main()
