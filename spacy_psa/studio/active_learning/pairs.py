"""How far annotators agree: kappa over words, F1 of spans by label, and where they differ."""

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

from spacy_psa.studio.active_learning.decisions import OUTSIDE, Decided, agreement


class LabelAgreement(NamedTuple):
    """The spans of a label on words that two annotators have decided."""

    label: str
    first: int
    """Spans of the first annotator."""
    second: int
    both: int
    """Spans that both have, with the same bounds."""

    @property
    def f1(self) -> float:
        """F1, the same whichever of the two counts as gold (Hripcsak, Rothschild 2005)."""
        return 2 * self.both / (self.first + self.second)


class PairAgreement(NamedTuple):
    """Two annotators on the words that both have decided."""

    annotators: tuple[str, str]
    texts: int
    words: int
    kappa: float | None
    """Cohen's kappa of the labels of words (Cohen 1960); None if it is undefined."""
    labels: list[dict[str, str | int | float]]
    """For each label, the fields of `LabelAgreement` and `f1`; the most frequent first."""
    differ: list[int]
    """The texts where they disagree about a span, as `agreement` finds it."""


def compare_annotators(decided: Mapping[int, Mapping[str, Decided]]) -> list[PairAgreement]:
    """Compare each two annotators who have decided words of the same texts, by name.

    A word of a text counts if both have decided it. Its label is that of its span, or "O". A span
    counts if both have decided all of its words. The decisions are by text and annotator.
    """
    names = sorted({name for own in decided.values() for name in own})
    pairs = (_compare(decided, *pair) for pair in combinations(names, 2))
    return [pair for pair in pairs if pair.words]


def kappa(cells: Mapping[tuple[str, str], int]) -> float | None:
    """Compute Cohen's kappa from the counts of pairs of labels.

    It is (a - e) / (1 - e): a is the share of words with the same label, and e the share that is
    expected if each annotator chose labels by chance, as often as before (Cohen 1960). It is
    undefined, None, if both have given the same single label to all words.
    """
    total = sum(cells.values())
    same = sum(count for (left, right), count in cells.items() if left == right) / total
    first: Counter[str] = Counter()
    second: Counter[str] = Counter()
    for (left, right), count in cells.items():
        first[left] += count
        second[right] += count
    expected = sum(first[label] * second[label] for label in first) / total**2
    return None if expected == 1 else (same - expected) / (1 - expected)


def _compare(
    decided: Mapping[int, Mapping[str, Decided]], first: str, second: str
) -> PairAgreement:
    cells: Counter[tuple[str, str]] = Counter()
    spans: tuple[Counter[str], Counter[str], Counter[str]] = (Counter(), Counter(), Counter())
    texts, differ = 0, []
    for number, own in sorted(decided.items()):
        if first not in own or second not in own:
            continue
        views = own[first], own[second]
        shared = views[0].tokens & views[1].tokens
        texts += bool(shared)
        left, right = (
            {i: label for s, e, label in view.accepted for i in range(s, e)} for view in views
        )
        cells.update((left.get(i, OUTSIDE), right.get(i, OUTSIDE)) for i in shared)
        sets = [
            {span for span in view.accepted if shared.issuperset(range(*span[:2]))}
            for view in views
        ]
        for counts, chosen in zip(spans, (*sets, sets[0] & sets[1])):
            counts.update(label for _, _, label in chosen)
        if agreement(views)[1]:
            differ.append(number)
    labels = [
        LabelAgreement(label, *(counts[label] for counts in spans)) for label in spans[0] | spans[1]
    ]
    labels.sort(key=lambda each: (-each.first - each.second, each.label))
    words = sum(cells.values())
    return PairAgreement(
        (first, second),
        texts,
        words,
        kappa(cells) if words else None,
        [{**each._asdict(), "f1": each.f1} for each in labels],
        differ,
    )
