"""Score the most probable entities of models and those with the highest expected F1.

    python -m benchmarks.decoders documents corpus/conll2003 \\
        training/documents/best-1/model-best training/documents/best-2/model-best --rounds 5

The record benchmarks/EXPERIMENT/results/NAME.json (kind "figures") has `models`: for each model its
`path`, and the F1 on `dev` and `test` data with the decoders `viterbi` and `mbr` of its entity
recogniser, as fractions of 1. `calibrated` is `mbr` at the `temperature` that `spacy-psa calibrate`
fits to the development data. With --rounds, the decoders also annotate the test data in turn, in
one thread; then the model has `rates`, the words per second of processor time in each round.
"""

from pathlib import Path
from typing import Any

import torch
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.analysis.temperature import Likelihood, fit_temperature
from spacy_psa.corpora.docbin import codecs_known
from spacy_psa.laboratory.performance.pipelines import Annotation
from spacy_psa.laboratory.performance.timing import alternate
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.result import read_examples

DECODERS = ("viterbi", "mbr")
WAYS = {"viterbi": "viterbi", "mbr": "mbr", "calibrated": "mbr"}
"""The decoder of each figure."""
PARTS = ("dev", "test")
PIPE, METRIC = "ner", "ents_f"


def measure(nlp: Language, data: Path) -> dict[str, Any]:
    """Score a pipeline with each decoder."""
    pipe: Any = nlp.get_pipe(PIPE)
    with codecs_known():
        examples = {part: read_examples(nlp, data / f"{part}.spacy") for part in PARTS}
    temperature = fit_temperature(Likelihood(pipe, examples["dev"]))
    scores: dict[str, Any] = {"temperature": temperature}
    for name, decoder in WAYS.items():
        pipe.decode = decoder
        pipe.temperature = temperature if name == "calibrated" else 1.0
        scores[name] = {part: nlp.evaluate(examples[part])[METRIC] for part in PARTS}
    pipe.temperature = 1.0
    return scores


class Decoding(Annotation):
    """Annotates copies of docs, which name their documents, with a decoder."""

    def __init__(self, nlp: Language, decoder: str, given: list[Doc]):
        super().__init__(decoder, nlp, [])
        self.given = given

    def docs(self) -> list[Doc]:
        pipe: Any = self.nlp.get_pipe(PIPE)
        pipe.decode = self.name
        return super().docs() + [doc.copy() for doc in self.given]


def rates(nlp: Language, data: Path, rounds: int) -> dict[str, list[int]]:
    """Measure the words a second of processor time of each decoder, in each round."""
    torch.set_num_threads(1)
    with codecs_known():
        docs = [example.predicted for example in read_examples(nlp, data / f"{PARTS[-1]}.spacy")]
    timings = alternate([Decoding(nlp, decoder, docs) for decoder in DECODERS], rounds)
    return {name: [round(t.amount / t.cpu_seconds) for t in of] for name, of in timings.items()}


def main() -> None:
    options = script_parser(globals())
    options.add_argument("experiment", metavar="EXPERIMENT", help="folder of benchmarks/")
    options.add_argument("data", type=Path, metavar="DATA", help="folder with dev and test data")
    options.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="trained pipeline")
    options.add_argument("--rounds", type=int, default=0, help="times that speed is measured (0)")
    options.add_argument("--name", default="decoders", help="of the record (decoders)")
    given = options.parse_args()
    rows = []
    for path in given.models:
        nlp = load_pipeline(str(path))
        rows.append({"path": str(path), **measure(nlp, given.data)})
        if given.rounds:
            rows[-1]["rates"] = rates(nlp, given.data, given.rounds)
        print(rows[-1], flush=True)
    data = [given.data / f"{part}.spacy" for part in PARTS]
    write_record(given.name, given.experiment, {"models": rows}, data=data)


if __name__ == "__main__":
    main()
