"""Draw F1 against the number of decisions, for each strategy, as a picture.

usage: python -m benchmarks.active.draw [TARGET.svg]

The default target is docs/pictures/active.svg, which is in the README.
"""

from pathlib import Path

from benchmarks.active.train import SHARES
from benchmarks.lookup import Lookup
from benchmarks.script import lighten, picture_path
from spacy_psa.analysis.figures import PALETTE, new_figure, save_figure

TITLES = {
    "random": "random sentences",
    "entropy": "unsure sentences",
    "spans": "unsure words of unsure sentences",
}
SYSTEMS = {"crf_ner": ("", "-"), "spacy": (" (spaCy)", ":")}
"""The suffix of a system in the legend, and the style of its line."""


def draw(target: Path) -> None:
    """Draw the figure from the records."""
    records = Lookup("active")

    def mean(address: str) -> float:
        return float(records.get(address).mean())

    figure = new_figure(8.5, 4.5)
    axes = figure.add_subplot()
    for (strategy, title), colour in zip(TITLES.items(), PALETTE):
        rounds = [f"{strategy}-*:rounds:{number}" for number in range(len(SHARES))]
        decisions = [mean(f"{each}:decisions") for each in rounds]
        for system, (suffix, style) in SYSTEMS.items():
            scores = [100 * mean(f"{each}:{system}:test:ents_f") for each in rounds]
            label = title + suffix
            axes.plot(decisions, scores, style, marker="o", color=colour, label=label)
    whole = "all-*:rounds:0"
    title = (
        f"all {mean(f'{whole}:sentences'):,.0f} sentences: "
        f"{mean(f'{whole}:decisions'):,.0f} decisions"
    )
    for system, (suffix, style) in SYSTEMS.items():
        score = 100 * mean(f"{whole}:{system}:test:ents_f")
        axes.axhline(score, label=title + suffix, linestyle=style, color="#768390", linewidth=1)
    axes.set_xlabel("decisions of an annotator")
    axes.set_ylabel("F1 on the test set of CoNLL-2003")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    lighten(axes)
    axes.legend(loc="lower right", frameon=False)
    save_figure(figure, target)


def main() -> None:
    draw(picture_path(globals(), "active.svg"))


if __name__ == "__main__":
    main()
