"""The whole comparison: which steps it takes, and what comes out of them as plain data."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy
from spacy.language import Language

from spacy_psa.errors import InputError
from spacy_psa.scoring.calibration import Judged, reliability, summary
from spacy_psa.scoring.provenance import provenance
from spacy_psa.scoring.sentence_counts import Count, by_length
from spacy_psa.studio.comparison.answers import Answers
from spacy_psa.studio.comparison.cases import Case, cases, sureness
from spacy_psa.studio.comparison.confusion import confusion
from spacy_psa.studio.comparison.gold import read_gold
from spacy_psa.studio.comparison.matching import RIGHT, WRONG, match
from spacy_psa.studio.comparison.scores import count, score_table, significance
from spacy_psa.studio.comparison.seen import CLASSES, by_seen, read_seen
from spacy_psa.studio.comparison.units import Component, Unit, find_component

FORMAT = 1
Step = tuple[str, Callable[[], None]]
Row = dict[str, Any]


class Comparison:
    """One or two pipelines beside gold annotation.

    Making one reads the data and checks it; `steps` do the work, and `report` gives what came out.

    Args:
        models: the pipelines by name.
        gold: a `.spacy` file with the truth, or a folder of them.
        component: the name of the component that is compared, in the first pipeline; None for the
            first that fits. The second has the one of this name, or its first for the same units.
        train: the training data, to tell words that were seen from others; None to leave this out.

    Raises:
        InputError: if there are not one or two pipelines, one has no such component or changes the
            tokens, or a file is missing, broken or without gold units.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> import spacy
        >>> from spacy.tokens import Doc, DocBin
        >>> nlp = spacy.blank("en")
        >>> nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ada"}])
        >>> doc = Doc(nlp.vocab, words=["Ada", "met", "Bob"], ents=["B-PER", "O", "B-PER"])
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "gold.spacy"
        ...     DocBin(docs=[doc]).to_disk(path)
        ...     comparison = Comparison({"rules": nlp}, path)
        ...     for _, step in comparison.steps():
        ...         step()
        ...     report = comparison.report()
        >>> [report["scores"][0]["models"][0][name]["value"] for name in "pr"]
        [1.0, 0.5]
        >>> [error["kinds"] for error in report["errors"]]
        [['missed']]
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
        found: list[Component] = []
        for name, nlp in models.items():
            kind = found[0].units.kind if found else None
            found.append(find_component(name, nlp, component, kind))
        self.units = found[0].units
        self._paths = {"gold": gold, "train": train}
        self._gold = read_gold(gold, self.units)
        self._seen = read_seen(train, self.units) if train else None
        self._answers = [
            Answers(name, nlp, each, self._gold, gold)
            for (name, nlp), each in zip(models.items(), found, strict=True)
        ]
        self._posteriors: list[dict[Unit, float]] = [{} for _ in found]

    def __len__(self) -> int:
        """The number of steps."""
        return sum(len(one) * (2 if one.has_posteriors else 1) for one in self._answers)

    def steps(self) -> Iterator[Step]:
        """Give the steps: the name of a pipeline, and a function that lets it do its next part."""
        for one in self._answers:
            for batch in range(len(one)):
                yield one.name, lambda one=one, batch=batch: one.predict(batch)  # type: ignore[misc]
        units = {unit for units in self._gold.units for unit in units}
        asked = sorted(units.union(*(one.units for one in self._answers)))
        for one, found in zip(self._answers, self._posteriors, strict=True):
            if one.has_posteriors:
                for batch in range(len(one)):
                    yield (
                        one.name,
                        lambda one=one, batch=batch, found=found: found.update(  # type: ignore[misc]
                            one.posteriors(batch, asked)
                        ),
                    )

    def report(self) -> Row:
        """Give all figures and errors, when the steps are done; what can be written as JSON."""
        gold = self._gold
        found = [gold.by_sentence(one.units) for one in self._answers]
        pairs = [[match(a, b) for a, b in zip(gold.units, own, strict=True)] for own in found]
        labels = sorted(
            {unit[2] for every in (gold.units, *found) for own in every for unit in own}
        )
        errors: list[tuple[int, Case]] = []
        for number, of_sentence in enumerate(zip(*pairs, strict=True)):
            errors += [(number, case) for case in cases(of_sentence)]
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
                {"name": o.name, "component": o.component.name, "posteriors": o.has_posteriors}
                for o in self._answers
            ],
            "labels": labels,
            "kinds": list(WRONG),
            "scores": [row._asdict() for row in score_table(gold.units, found)],
            "p_value": significance(gold.units, found),
            "confusion": [confusion((p for own in each for p in own), labels) for each in pairs],
            "calibration": [self._calibration(i, own) for i, own in enumerate(found)],
            "lengths": [self._by_length(own) for own in found],
            "seen": self._by_seen(found),
            "sentences": {number: self._sentence(number, found) for number, _ in errors},
            "errors": [self._error(number, case) for number, case in errors],
        }

    def _calibration(self, model: int, found: list[list[Unit]]) -> Row | None:
        """How far the probabilities of the predicted units can be believed."""
        if not self._answers[model].has_posteriors:
            return None
        posteriors, sure, right = self._posteriors[model], [], []
        for wanted, given in zip(self._gold.units, found, strict=True):
            sure += [posteriors[unit] for unit in given]
            right += [unit in wanted for unit in given]
        missed = sum(map(len, self._gold.units)) - sum(right)
        judged = Judged(numpy.array(sure, dtype=float), numpy.array(right, dtype=bool), missed)
        return {**summary(judged), "bins": [bin._asdict() for bin in reliability(judged)]}

    def _by_length(self, found: list[list[Unit]]) -> list[Row]:
        gold = self._gold
        lengths = [end - start for start, end in gold.sentences]
        counts = [count(a, b) for a, b in zip(gold.units, found, strict=True)]
        return [
            _counted(each.name, each.units) | {"sentences": each.sentences}
            for each in by_length(zip(lengths, counts, strict=True))
        ]

    def _by_seen(self, found: list[list[list[Unit]]]) -> list[list[Row]] | None:
        if self._seen is None:
            return None
        gold = self._gold
        every = [by_seen(self._seen, gold.words, gold.units, own) for own in found]
        return [[_counted(*each) for each in zip(CLASSES, own)] for own in every]

    def _sentence(self, number: int, found: list[list[list[Unit]]]) -> Row:
        start, end = self._gold.sentences[number]
        words, spaces = self._gold.words[start:end], self._gold.spaces[start:end]
        return {
            "tokens": [*map(list, zip(words, spaces))],
            "gold": [_moved(unit, start) for unit in self._gold.units[number]],
            "found": [[_moved(unit, start) for unit in own[number]] for own in found],
        }

    def _error(self, number: int, case: Case) -> Row:
        start, _ = self._gold.sentences[number]
        posteriors, sure = [], []
        for model, (one, found) in enumerate(zip(self._answers, self._posteriors, strict=True)):
            known = one.has_posteriors
            values = [_short(found[unit]) for unit in case.units] if known else None
            posteriors.append(values)
            sure.append(_short(sureness(case, model, found)) if known else None)
        return {
            "sentence": number,
            "gold": case.gold and _moved(case.gold, start),
            "found": [unit and _moved(unit, start) for unit in case.found],
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
