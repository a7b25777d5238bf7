"""Look up figures in the records: the functions of the expressions on the pages.

Scores are percentages. A figure of several records is a value for each of them, in the order of
their names; a page shows their mean.
"""

from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from benchmarks.record import FOLDER, read_record
from spacy_psa.errors import InputError
from spacy_psa.scoring.statistics import seed_p_value

Values: TypeAlias = NDArray[numpy.float64]
SCORES = ("ents", "spans_chunks", "chunks", "constituents")


@cache
def records_of(experiment: str) -> dict[str, dict[str, Any]]:
    """The records of an experiment, by name."""
    paths = sorted((FOLDER / experiment / "results").glob("*.json"))
    return {path.stem: read_record(path) for path in paths}


class Lookup:
    """Reads the records.

    `names` is the name of a record or a pattern, such as "psa-seed[12]", or several of them with
    commas between. Records of another experiment are "EXPERIMENT/NAME", and so are those after it.

    Args:
        experiment: the experiment of names without "/".
    """

    def __init__(self, experiment: str) -> None:
        self.experiment = experiment

    def records(self, names: str) -> list[dict[str, Any]]:
        """The records with some names.

        Raises:
            InputError: if a name has no record.
        """
        selected, experiment = [], self.experiment
        for pattern in names.split(","):
            place, _, name = pattern.strip().rpartition("/")
            experiment = place or experiment
            records = records_of(experiment)
            matching = [record for key, record in records.items() if fnmatchcase(key, name)]
            if not matching:
                raise InputError(f"no record is named {pattern!r}")
            selected += matching
        return selected

    def raw(self, address: str) -> list[Any]:
        """The values at an address, "NAMES:KEY:KEY…", in each record.

        The keys lead into `results`, or else into the record. A key with "*" leads to all items of
        a list, or to the items of an object whose keys match.

        Raises:
            InputError: if a name has no record, or a record has no such key.
        """
        names, *keys = address.split(":")
        values: list[Any] = [{**record, **record["results"]} for record in self.records(names)]
        for key in keys:
            try:
                values = [each for value in values for each in _step(value, key)]
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise InputError(f"{address!r}: there is no {key!r}") from error
        return values

    def get(self, address: str) -> Values:
        """The numbers at an address; see `raw`. A list of numbers counts as its numbers."""
        return numpy.concatenate([numpy.ravel(value) for value in self.raw(address)]).astype(float)

    def ratio(self, address: str, key: str, other: str) -> float:
        """The median of the numbers under a key, as a multiple of that under another key."""
        ours, theirs = (numpy.median(self.get(f"{address}:{each}")) for each in (key, other))
        return float(ours / theirs)

    def dev(self, names: str) -> Values:
        """The best scores on development data."""
        return 100 * self.get(f"{names}:best:score")

    def test(self, names: str, kind: str = "f") -> Values:
        """The F1 of entities, chunks or trees on the data that was scored, or the accuracy of tags.

        The `kind` is "p" for precision and "r" for recall.
        """
        return numpy.array([100 * _score(scores, kind) for scores in self.raw(f"{names}:scores")])

    def dev_at(self, names: str, *epochs: int) -> tuple[float, ...]:
        """The development scores of some epochs, record by record; of an epoch the last one."""
        each = (record["name"] for record in self.records(names))
        return tuple(self._evaluations(name, e, e)[-1, 0] for name in each for e in epochs)

    def loss_at(self, names: str, epoch: int) -> float:
        """The training loss of an epoch, with one evaluation an epoch."""
        ((_, loss),) = self._evaluations(names, epoch, epoch)
        return float(loss)

    def dev_between(self, names: str, first: int, last: int) -> Values:
        """All development scores from one epoch to another."""
        return self._evaluations(names, first, last)[:, 0]

    def epochs(self, names: str) -> Values:
        """The last epochs that were evaluated."""
        return numpy.array([rows[-1]["epoch"] for rows in self.raw(f"{names}:dev")], float)

    def best(self, names: str) -> tuple[Values, Values, Values]:
        """The best development scores, their epochs, and the last epochs."""
        return self.dev(names), self.get(f"{names}:best:epoch"), self.epochs(names)

    def run(self, plan: str, run: str, part: str) -> Values:
        """The scores of a run in the record of a plan, by seed."""
        (seeds,) = self.raw(f"{plan}:runs:{run}")
        return numpy.array([100 * seeds[seed][part] for seed in sorted(seeds)])

    def count(self, names: str) -> int:
        """The number of records."""
        return len(self.records(names))

    def _evaluations(self, names: str, first: int, last: int) -> Values:
        """Score and loss of each evaluation in some epochs, but for that before the first step."""
        rows = [
            (100 * row["score"], sum(row["losses"].values()))
            for row in self.raw(f"{names}:dev:*")
            if row["step"] and first <= row["epoch"] <= last
        ]
        return numpy.array(rows)


def _step(value: Any, key: str) -> list[Any]:
    if "*" in key:
        if isinstance(value, dict):
            return [each for name, each in value.items() if fnmatchcase(name, key)]
        return list(value)
    return [value[int(key)] if isinstance(value, list) else value[key]]


def _score(scores: dict[str, Any], kind: str) -> float:
    for key in SCORES:
        if f"{key}_{kind}" in scores:
            return float(scores[f"{key}_{kind}"])
    return float(scores["tag_acc"])


def gap(values: Values, others: Values) -> Decimal:
    """The difference of two means, as their two printed decimals have it.

    Examples:
        >>> gap(numpy.array([90.7324]), numpy.array([90.6852]))
        Decimal('0.04')
    """
    mean, other = (Decimal(f"{numpy.mean(each):.2f}") for each in (values, others))
    return mean - other


def around(values: Values) -> tuple[float, float, float]:
    """The median, the least and the greatest of some values."""
    return float(numpy.median(values)), min(values), max(values)


def p_value(values: Values, others: Values) -> float:
    """The p-value of a difference in means, by permutation over seeds."""
    value = seed_p_value(list(values), list(others))
    if value is None:
        raise InputError("a p-value needs several seeds of both systems")
    return value
