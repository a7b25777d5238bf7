"""A picture of F1 by the length of sentences (Wei2020 Fig. 4)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spacy_psa.analysis.figures import colours, new_figure
from spacy_psa.scoring.sentence_counts import Bin

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
