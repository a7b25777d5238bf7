"""Test whether PSA-BiLSTM-CRF differs from its baseline in F1.

    python -m benchmarks.conll2003.significance corpus/conll2003/test.spacy \\
        benchmarks/conll2003/results/significance.json \\
        --psa training/conll2003-psa-{1,2}/model-best \\
        --baseline training/conll2003-bilstm_crf-{1,2}/model-best

Results (kind "figures"): `psa` and `baseline`, the F1 of each model; `difference` of their means;
`interval`, its 95% interval by a paired bootstrap over sentences; `sentences`, how many there are;
`p_sentences`, by a paired permutation test over sentences.
"""

from pathlib import Path
from typing import Any

import numpy
import torch

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.laboratory.experiments.job import score
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.statistics import f1, mean_f1, paired_interval, sentence_p_value


def counts(model: Path, data: Path) -> list[tuple[int, int, int]]:
    """The right, predicted and gold entities of each sentence."""
    corpus = {"@readers": "spacy.Corpus.v1", "path": str(data), "gold_preproc": False}
    return score(load_pipeline(str(model)), corpus).sentences["ents_f"]


def measure(psa: list[Path], baseline: list[Path], data: Path) -> dict[str, Any]:
    """Compare the models of two systems, each with one model a seed, on the same sentences.

    Args:
        psa: the models of the first system.
        baseline: those of the second, whose F1 is taken off.
        data: gold documents.
    """
    one, other = (numpy.array([counts(m, data) for m in each], float) for each in (psa, baseline))
    return {
        "psa": f1(one.sum(1)).tolist(),
        "baseline": f1(other.sum(1)).tolist(),
        "difference": mean_f1(one) - mean_f1(other),
        "interval": list(paired_interval(one, other)),
        "sentences": one.shape[1],
        "p_sentences": sentence_p_value(one, other),
    }


def main() -> None:
    options = script_parser("benchmarks.conll2003.significance", __doc__, "DATA.spacy", "OUT.json")
    for name in ("--psa", "--baseline"):
        options.add_argument(name, type=Path, nargs="+", metavar="MODEL", required=True)
    given = options.parse_args()
    torch.set_num_threads(1)
    found = measure(given.psa, given.baseline, given.data)
    print(found)
    write_record(given.out, "conll2003", found, data=[given.data])


if __name__ == "__main__":
    main()
