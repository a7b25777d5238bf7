"""Draw test F1 against the words of the training data, for each corpus, as a picture.

usage: python -m benchmarks.small_data.draw [TARGET.svg]

The default target is docs/pictures/small_data.svg.
"""

from pathlib import Path

from benchmarks.lookup import Lookup
from benchmarks.script import lighten, picture_path
from benchmarks.small_data.figures import samples, scores
from spacy_psa.analysis.figures import PALETTE, new_figure, save_figure

CORPORA = {"wnut17": "WNUT-17", "wikigold": "Wikigold", "conll2003": "CoNLL-2003"}
LINES = {
    ("ours", True): ("spacy-psa, GloVe", "-", PALETTE[0]),
    ("efficiency", True): ("spaCy, efficiency, GloVe", ":", PALETTE[0]),
    ("accuracy", True): ("spaCy, accuracy, GloVe", "--", PALETTE[0]),
    ("ours", False): ("spacy-psa", "-", PALETTE[1]),
    ("efficiency", False): ("spaCy, efficiency", ":", PALETTE[1]),
    ("accuracy", False): ("spaCy, accuracy", "--", PALETTE[1]),
}


def draw(target: Path) -> None:
    """Draw the figure from the records."""
    records = Lookup("small_data")
    figure = new_figure(10.0, 4.1)
    panels = figure.subplots(1, len(CORPORA))
    for axes, (corpus, title) in zip(panels, CORPORA.items()):
        for (system, vectors), (label, style, colour) in LINES.items():
            points = sorted(
                (records.get(f"{sample}:words").mean(), scores(sample, system, "test").mean())
                for sample in samples(corpus, vectors)
            )
            axes.plot(*zip(*points), style, marker="o", markersize=4, color=colour, label=label)
        axes.set_title(title, fontsize=10)
        axes.set_xscale("log")
        axes.set_xticks([2_000, 10_000, 50_000])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.minorticks_off()
        axes.set_xlabel("words of training data")
        axes.set_ylim(bottom=0)
        lighten(axes)
    panels[0].set_ylabel("F1 on test data")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    save_figure(figure, target)


def main() -> None:
    draw(picture_path(globals(), "small_data.svg"))


if __name__ == "__main__":
    main()
