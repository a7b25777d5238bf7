"""Precision, recall and F1 of models: overall, by type, and by what training data had."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.vocab import Vocab

from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.errors import InputError
from spacy_psa.scoring.sentence_counts import Count
from spacy_psa.scoring.statistics import f1, interval, resampled_sums, sentence_p_value
from spacy_psa.studio.comparison.units import Unit, Units

Counts = NDArray[numpy.float64]
CLASSES = ("seen with this type", "all words seen", "a word not seen")


def count_table(
    gold: Sequence[Sequence[Unit]],
    models: Sequence[Sequence[Sequence[Unit]]],
    labels: Sequence[str],
) -> Counts:
    """Count the units of each sentence, (models, 1 + labels, sentences, 3).

    The first row is that of all labels; the numbers are those of a `Count`.
    """
    place = {label: i for i, label in enumerate(labels, 1)}
    table = numpy.zeros((len(models), 1 + len(labels), len(gold), 3))
    for m, predicted in enumerate(models):
        for i, kinds in enumerate(_kinds(gold, predicted)):
            for kind, units in enumerate(kinds):
                for _, _, label in units:
                    table[m, [0, place[label]], i, kind] += 1
    return table


def _kinds(
    gold: Sequence[Sequence[Unit]], predicted: Sequence[Sequence[Unit]]
) -> list[tuple[set[Unit], set[Unit], set[Unit]]]:
    """List the right, predicted and gold units of each sentence."""
    return [({*a} & {*b}, {*b}, {*a}) for a, b in zip(gold, predicted, strict=True)]


def score_rows(table: Counts, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Score models by a `count_table`: a row for all units (label None), then one for each type.

    A row has the number of gold units; for each model `p`, `r` and `f`, each with `value` and
    `interval`, and its `counts`; and the `difference` of two models in F1.

    Intervals are 95% bootstrap intervals over sentences. All models and types share the draws, so
    that differences are paired.
    """
    models, rows, sentences, _ = table.shape
    drawn = resampled_sums(table.reshape(models * rows, sentences, 3)).reshape(-1, models, rows, 3)
    sums = table.sum(2)
    return [_row(label, sums[:, i], drawn[:, :, i]) for i, label in enumerate([None, *labels])]


def _row(label: str | None, sums: Counts, drawn: Counts) -> dict[str, Any]:
    values, draws = _prf(sums), _prf(drawn)
    models = [
        {
            **{
                name: {"value": float(values[name][m]), "interval": interval(draws[name][:, m])}
                for name in values
            },
            "counts": sums[m].astype(int).tolist(),
        }
        for m in range(len(sums))
    ]
    difference = None
    if len(sums) == 2:
        difference = {
            "value": float(values["f"][0] - values["f"][1]),
            "interval": interval(draws["f"][:, 0] - draws["f"][:, 1]),
        }
    return {"label": label, "gold": int(sums[0, 2]), "models": models, "difference": difference}


def _prf(counts: Counts) -> dict[str, NDArray[numpy.float64]]:
    """Precision, recall and F1 of counts; 0 where there is no unit."""
    right = counts[..., 0]
    return {
        name: numpy.divide(right, whole, out=numpy.zeros_like(right), where=whole > 0)
        for name, whole in (("p", counts[..., 1]), ("r", counts[..., 2]))
    } | {"f": f1(counts)}


def significance(table: Counts) -> float | None:
    """Compute the p-value of the difference of two models in F1, by sentences; None for one."""
    return sentence_p_value(table[0, :1], table[1, :1]) if len(table) == 2 else None


class Seen(NamedTuple):
    """The words of training data, and the words of its units with their types."""

    words: set[str]
    units: set[tuple[tuple[str, ...], str]]

    def place(self, words: Sequence[str], label: str) -> int:
        """Find the class of a unit, as its place in `CLASSES`."""
        if (tuple(words), label) in self.units:
            return 0
        return 1 if self.words.issuperset(words) else 2


def read_seen(path: Path, units: Units) -> Seen:
    """Read training data, a `.spacy` file or a folder of them."""
    seen = Seen(set(), set())
    for doc in read_docbins(path, Vocab()):
        words = [token.text for token in doc]
        seen.words.update(words)
        seen.units.update((tuple(words[s:e]), label) for s, e, label in units.of(doc))
    if not seen.words:
        raise InputError(f"{path}: no words in it; use the training data of the models")
    return seen


def by_seen(
    seen: Seen,
    words: Sequence[str],
    gold: Sequence[Sequence[Unit]],
    predicted: Sequence[Sequence[Unit]],
) -> list[Count]:
    """Count the units of each of the `CLASSES`, over the words of a corpus.

    A gold unit and a predicted one are each of the class of their own words and type.
    """
    counts = [[0, 0, 0] for _ in CLASSES]
    for kinds in _kinds(gold, predicted):
        for kind, units in enumerate(kinds):
            for start, end, label in units:
                counts[seen.place(words[start:end], label)][kind] += 1
    return [Count(*each) for each in counts]
