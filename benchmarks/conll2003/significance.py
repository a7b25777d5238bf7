"""Test whether PSA-BiLSTM-CRF differs from its baseline in F1.

Results (kind "figures"): `psa` and `baseline`, the F1 of each model; `difference` of their means;
`interval`, its 95% interval by a paired bootstrap over sentences; the number of `sentences`;
`p_sentences`, the p-value of a paired permutation test over sentences.
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
    """Compare the models of two systems, one model per seed, on the same sentences."""
    ours, base = (numpy.array([counts(m, data) for m in each], float) for each in (psa, baseline))
    return {
        "psa": f1(ours.sum(1)).tolist(),
        "baseline": f1(base.sum(1)).tolist(),
        "difference": mean_f1(ours) - mean_f1(base),
        "interval": list(paired_interval(ours, base)),
        "sentences": ours.shape[1],
        "p_sentences": sentence_p_value(ours, base),
    }


def main() -> None:
    options = script_parser(globals(), "DATA.spacy", "OUT.json")
    for name in ("--psa", "--baseline"):
        options.add_argument(name, type=Path, nargs="+", metavar="MODEL", required=True)
    given = options.parse_args()
    torch.set_num_threads(1)
    results = measure(given.psa, given.baseline, given.data)
    print(results)
    write_record(given.out, "conll2003", results, data=[given.data])


if __name__ == "__main__":
    main()
