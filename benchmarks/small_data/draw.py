"""Draw test F1 against the words of the training data, for each corpus, as a picture.

usage: python -m benchmarks.small_data.draw [TARGET.svg]

The default target is docs/pictures/small_data.svg.
"""

from argparse import ArgumentParser
from pathlib import Path
from statistics import mean

from benchmarks.active.tables import scores
from benchmarks.picture import PICTURES, lighten, picture_parser
from benchmarks.record import FOLDER, read_record
from benchmarks.small_data.tables import CORPORA, cells
from spacy_psa.analysis.figures import PALETTE, new_figure, save_figure

TARGET = PICTURES / "small_data.svg"
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
    results = (FOLDER / "small_data" / "results").glob("*.json")
    there = cells({path.stem: read_record(path) for path in results})
    figure = new_figure(10.0, 4.1)
    panels = figure.subplots(1, len(CORPORA))
    for axes, (corpus, title) in zip(panels, CORPORA.items()):
        for (system, vectors), (label, style, colour) in LINES.items():
            points = sorted(
                (mean(row["words"] for row in cell.rows), 100 * mean(found))
                for cell in there
                if (cell.corpus, cell.vectors) == (corpus, vectors)
                and (found := scores(cell.rows, system, "test"))
            )
            line = zip(*points) if points else ([], [])
            axes.plot(*line, style, marker="o", markersize=4, color=colour, label=label)
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


def parser() -> ArgumentParser:
    return picture_parser("benchmarks.small_data.draw", __doc__, TARGET)


if __name__ == "__main__":
    draw(parser().parse_args().target)
