"""F1 by the length of sentences (Wei2020 Fig. 4)."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from spacy_psa.analysis.figures import colours, new_figure
from spacy_psa.scoring.sentence_counts import Count, total

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EDGES = (5, 10, 20, 30, 40)
"""The least numbers of tokens of the second bin, the third and so on."""


class Bin(NamedTuple):
    """The sentences of some lengths."""

    least: int
    most: int | None
    """The greatest number of tokens; None for no limit."""
    sentences: int
    units: Count

    @property
    def name(self) -> str:
        """The lengths, as they are written: "5-9"."""
        return f"{self.least}+" if self.most is None else f"{self.least}-{self.most}"


def by_length(counts: Iterable[tuple[int, Count]], edges: Sequence[int] = EDGES) -> list[Bin]:
    """Sum the counts of sentences of about the same length.

    Args:
        counts: the tokens of each sentence, and its counts.
        edges: the least numbers of tokens of all bins but the first, rising.

    Examples:
        >>> bins = by_length([(3, Count(1, 1, 1)), (7, Count(0, 1, 1))], edges=[5])
        >>> [(each.name, each.sentences, each.units.f1) for each in bins]
        [('1-4', 1, 1.0), ('5+', 1, 0.0)]
    """
    held: list[list[Count]] = [[] for _ in range(len(edges) + 1)]
    for tokens, count in counts:
        held[bisect_right(edges, tokens)].append(count)
    bounds = zip([1, *edges], [*(edge - 1 for edge in edges), None], strict=True)
    return [
        Bin(least, most, len(each), total(each))
        for (least, most), each in zip(bounds, held, strict=True)
    ]


def draw_lengths(models: Mapping[str, Sequence[Bin]], score: str) -> "Figure":
    """Draw the score of each model by the length of sentences, over the number of sentences.

    Args:
        models: the bins of each model.
        score: what the score is called.

    Raises:
        InputError: if matplotlib is not installed.
    """
    figure = new_figure(6.5, 4.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    lines = []
    for bins, colour in zip(models.values(), colours(len(models))):
        filled = [(place, each) for place, each in enumerate(bins) if each.units.gold]
        places = [place for place, _ in filled]
        values = [100 * each.units.f1 for _, each in filled]
        lines += above.plot(places, values, "o-", color=colour)
    first = next(iter(models.values()))
    names = [each.name for each in first]
    below.bar(range(len(first)), [each.sentences for each in first], color="#bbbbbb")
    below.set_xticks(range(len(first)), names)
    below.set(xlabel="tokens of a sentence", ylabel="sentences")
    above.set(ylabel=f"{score}, %")
    above.grid(alpha=0.3)
    # With handles, since of its own matplotlib leaves out names that begin with "_".
    above.legend(lines, models)
    return figure
