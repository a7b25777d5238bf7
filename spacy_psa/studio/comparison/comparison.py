"""The whole comparison: its steps, and its results as plain data."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy
from spacy.language import Language

from spacy_psa.errors import InputError
from spacy_psa.scoring.calibration import Judged, reliability, summary
from spacy_psa.scoring.partial_credit import partial_credit
from spacy_psa.scoring.provenance import provenance
from spacy_psa.scoring.sentence_counts import Count, by_length
from spacy_psa.studio.comparison.answers import Answers
from spacy_psa.studio.comparison.matching import RIGHT, WRONG, Case, cases, confusion, match
from spacy_psa.studio.comparison.scores import (
    CLASSES,
    Counts,
    by_seen,
    count_table,
    read_seen,
    score_rows,
    significance,
)
from spacy_psa.studio.comparison.units import Component, Unit, find_component, read_gold

FORMAT = 1
Step = tuple[str, Callable[[], None]]
Row = dict[str, Any]


class Comparison:
    """One or two pipelines compared with gold annotation.

    The constructor reads the data and checks it; `steps` do the work, then `report` has the
    results.

    Args:
        models: the pipelines by name.
        gold: a `.spacy` file with the gold annotation, or a folder of them.
        component: the name of the component that is compared, in the first pipeline; None for the
            first that fits. The second has the one of this name, or its first for the same units.
        train: the training data, to distinguish words that were seen from others; None to leave
            this out.
    """

    def __init__(
        self,
        models: Mapping[str, Language],
        gold: Path,
        component: str | None = None,
        train: Path | None = None,
    ):
        if not 1 <= len(models) <= 2:
            raise InputError(f"{len(models)} models: one or two can be compared")
        chosen: list[Component] = []
        for name, nlp in models.items():
            kind = chosen[0].units.kind if chosen else None
            chosen.append(find_component(name, nlp, component, kind))
        self.units = chosen[0].units
        self._paths = {"gold": gold, "train": train}
        self._gold = read_gold(gold, self.units)
        self._seen = read_seen(train, self.units) if train else None
        self._answers = [
            Answers(name, nlp, each, self._gold, gold)
            for (name, nlp), each in zip(models.items(), chosen, strict=True)
        ]
        self._posteriors: list[dict[Unit, float]] = [{} for _ in chosen]

    def __len__(self) -> int:
        """The number of steps."""
        return sum(len(each) * (2 if each.has_posteriors else 1) for each in self._answers)

    def steps(self) -> Iterator[Step]:
        """Yield the steps: the name of a pipeline, and a function that does its next part."""
        for answers in self._answers:
            for batch in range(len(answers)):
                yield answers.name, partial(answers.predict, batch)
        gold = {unit for units in self._gold.units for unit in units}
        asked = sorted(gold.union(*(answers.units for answers in self._answers)))
        for i, answers in enumerate(self._answers):
            for batch in range(len(answers) if answers.has_posteriors else 0):
                yield answers.name, partial(self._ask, i, batch, asked)

    def _ask(self, model: int, batch: int, asked: list[Unit]) -> None:
        self._posteriors[model].update(self._answers[model].posteriors(batch, asked))

    def report(self) -> Row:
        """Collect all figures and errors, after the steps, as data that can be written as JSON."""
        gold = self._gold
        predicted = [gold.by_sentence(answers.units) for answers in self._answers]
        pairs = [[match(a, b) for a, b in zip(gold.units, own, strict=True)] for own in predicted]
        labels = sorted(
            {unit[2] for every in (gold.units, *predicted) for own in every for unit in own}
        )
        table = count_table(gold.units, predicted, labels)
        errors: list[tuple[int, Case]] = []
        for number, sentence in enumerate(zip(*pairs, strict=True)):
            errors += [(number, case) for case in cases(sentence)]
        return {
            "format": FORMAT,
            **provenance([path for path in self._paths.values() if path]),
            "gold": {
                "path": str(self._paths["gold"]),
                "train": str(self._paths["train"]) if self._seen else None,
                "documents": gold.documents,
                "sentences": len(gold.sentences),
                "tokens": len(gold.words),
                "units": sum(map(len, gold.units)),
            },
            "units": self.units.kind,
            "models": [
                {"name": a.name, "component": a.component.name, "posteriors": a.has_posteriors}
                for a in self._answers
            ],
            "labels": labels,
            "kinds": list(WRONG),
            "scores": score_rows(table, labels),
            "p_value": significance(table),
            "partial_credit": [partial_credit(zip(gold.units, own)) for own in predicted],
            "confusion": [confusion((p for own in each for p in own), labels) for each in pairs],
            "calibration": [self._calibration(i, own) for i, own in enumerate(predicted)],
            "lengths": [self._by_length(counts[0]) for counts in table],
            "seen": self._by_seen(predicted),
            "sentences": {number: self._sentence(number, predicted) for number, _ in errors},
            "errors": [self._error(number, case) for number, case in errors],
        }

    def _calibration(self, model: int, predicted: list[list[Unit]]) -> Row | None:
        """Compare the probabilities of the predicted units with how often they are right."""
        if not self._answers[model].has_posteriors:
            return None
        posteriors, sure, right = self._posteriors[model], [], []
        for gold, own in zip(self._gold.units, predicted, strict=True):
            sure += [posteriors[unit] for unit in own]
            right += [unit in gold for unit in own]
        missed = sum(map(len, self._gold.units)) - sum(right)
        judged = Judged(numpy.array(sure, dtype=float), numpy.array(right, dtype=bool), missed)
        return {**summary(judged), "bins": [bin._asdict() for bin in reliability(judged)]}

    def _by_length(self, table: Counts) -> list[Row]:
        lengths = [end - start for start, end in self._gold.sentences]
        counts = [Count(*row) for row in table.astype(int).tolist()]
        return [
            _counted(each.name, each.units) | {"sentences": each.sentences}
            for each in by_length(zip(lengths, counts, strict=True))
        ]

    def _by_seen(self, predicted: list[list[list[Unit]]]) -> list[list[Row]] | None:
        if self._seen is None:
            return None
        gold = self._gold
        every = [by_seen(self._seen, gold.words, gold.units, own) for own in predicted]
        return [[_counted(*each) for each in zip(CLASSES, own)] for own in every]

    def _sentence(self, number: int, predicted: list[list[list[Unit]]]) -> Row:
        start, end = self._gold.sentences[number]
        words, spaces = self._gold.words[start:end], self._gold.spaces[start:end]
        return {
            "tokens": [*map(list, zip(words, spaces))],
            "gold": [_moved(unit, start) for unit in self._gold.units[number]],
            "found": [[_moved(unit, start) for unit in own[number]] for own in predicted],
        }

    def _error(self, number: int, case: Case) -> Row:
        start, _ = self._gold.sentences[number]
        posteriors, sure = [], []
        for model, (answers, own) in enumerate(zip(self._answers, self._posteriors, strict=True)):
            known = answers.has_posteriors
            posteriors.append([_short(own[unit]) for unit in case.units] if known else None)
            sure.append(_short(case.sureness(model, own)) if known else None)
        return {
            "sentence": number,
            "gold": case.gold and _moved(case.gold, start),
            "found": [unit and _moved(unit, start) for unit in case.predicted],
            "kinds": list(case.kinds),
            "wrong": [kind != RIGHT for kind in case.kinds],
            "sure": sure,
            "units": [_moved(unit, start) for unit in case.units],
            "posteriors": posteriors,
        }


def _moved(unit: Unit, start: int) -> list[Any]:
    return [unit[0] - start, unit[1] - start, unit[2]]


def _short(probability: float) -> float:
    """Round to 9 digits, of which those before the first that is not 0 do not count."""
    return float(f"{probability:.9g}")


def _counted(name: str, units: Count) -> Row:
    return {"name": name, **units._asdict(), "f1": units.f1 if units.gold else None}
