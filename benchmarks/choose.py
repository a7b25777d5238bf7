"""Compare two runs of a plan on development data, by the rule of benchmarks/protocol.md.

The trainings are those of `python -m benchmarks.run_plan PLAN.toml`, in training/EXPERIMENT/PLAN.
Only seeds that both runs have finished count. With `--splits 5`, the runs are NEW_1, OLD_1 to NEW_5
and OLD_5, and the development documents those that each split holds out. The record
benchmarks/EXPERIMENT/results/PLAN-NEW-OLD.json has `new` and `old`: the names of the runs; `seeds`;
`documents`, their number; `scores`: {run: the F1 of each seed}; `difference` of the means;
`interval`, its 95% interval over documents; `better`, the probability that the new run is better,
over documents and seeds; `chosen`, the run to use.
"""

from pathlib import Path
from typing import Any

import numpy
import spacy

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.record import FILE, Record, read_record
from spacy_psa.scoring.statistics import f1, mean_f1, paired_interval, probability_better
from spacy_psa.sentences import document_numbers, sentence_bounds

ENOUGH = 0.95


def finished(folder: Path) -> dict[int, Record]:
    """The finished trainings of a run by seed."""
    records = (read_record(path) for path in sorted(folder.glob(f"seed-*/{FILE}")))
    return {each.seed: each for each in records if each.state == "finished"}


def by_document(record: Record, numbers: numpy.ndarray) -> numpy.ndarray:
    """Sum the counts of sentences over documents: (documents, 3)."""
    assert record.dev is not None
    table = numpy.zeros((numbers[-1] + 1, 3))
    numpy.add.at(table, numbers, numpy.array(record.dev.sentences[record.metric]))
    return table


def tables(out: Path, names: tuple[str, str]) -> dict[int, list[numpy.ndarray]]:
    """Read the counts of two runs by the seeds that both have finished: (documents, 3) for each."""
    first, second = (finished(out / name) for name in names)
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        both = " and ".join(names)
        raise InputError(f"{out}: {both} have no finished seed in common; train the plan")
    dev = first[seeds[0]].dev
    assert dev is not None
    docs = list(read_docbin(Path(dev.path), spacy.blank("en").vocab))
    sizes = [len(sentence_bounds(doc)) for doc in docs]
    numbers = numpy.repeat(document_numbers(docs), sizes)
    return {seed: [by_document(run[seed], numbers) for run in (first, second)] for seed in seeds}


def compare(out: Path, new: str, old: str, splits: int = 0) -> dict[str, Any]:
    """Compare the runs `new` and `old` in the folder of a plan.

    Args:
        splits: the number of splits of the training documents, which have the runs `new`_1, `old`_1
            and so on; 0 for two runs on the same data.

    Raises:
        InputError: if two runs have no seed in common.
    """
    endings = [f"_{number}" for number in range(1, splits + 1)] or [""]
    parts = [tables(out, (new + ending, old + ending)) for ending in endings]
    seeds = sorted(set.intersection(*(set(part) for part in parts)))
    if not seeds:
        raise InputError(f"{out}: the splits have no finished seed in common; train the plan")
    ours, theirs = (
        numpy.array([numpy.concatenate([part[seed][i] for part in parts]) for seed in seeds])
        for i in range(2)
    )
    better = probability_better(ours, theirs)
    return {
        "new": new,
        "old": old,
        "seeds": seeds,
        "documents": ours.shape[1],
        "scores": {new: f1(ours.sum(1)).tolist(), old: f1(theirs.sum(1)).tolist()},
        "difference": mean_f1(ours) - mean_f1(theirs),
        "interval": list(paired_interval(ours, theirs)),
        "better": better,
        "chosen": new if better >= ENOUGH else old,
    }


def main() -> None:
    options = script_parser(globals(), "PLAN.toml")
    options.add_argument("new", metavar="NEW", help="run with the new setting")
    options.add_argument("old", metavar="OLD", help="run with the setting so far")
    options.add_argument("--splits", type=int, default=0, help="number of splits: NEW_1, OLD_1 …")
    given = options.parse_args()
    experiment = given.plan.resolve().parent.name
    out = Path("training", experiment, given.plan.stem)
    result = compare(out, given.new, given.old, given.splits)
    write_record(f"{given.plan.stem}-{given.new}-{given.old}", experiment, result)
    low, high = (100 * bound for bound in result["interval"])
    print(
        f"{given.new} less {given.old}: {100 * result['difference']:+.2f} ({low:+.2f} to "
        f"{high:+.2f}), better with a probability of {result['better']:.3f}: use {result['chosen']}"
    )


if __name__ == "__main__":
    main()
