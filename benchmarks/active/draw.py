"""Draw F1 against the number of decisions, for each way to ask, as a picture.

usage: python -m benchmarks.active.draw [TARGET.svg]

The default target is docs/pictures/active.svg, which the README shows.
"""

from argparse import ArgumentParser
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.active.tables import STRATEGIES, SYSTEMS, by_round, scores
from benchmarks.picture import PICTURES, lighten, picture_parser
from benchmarks.record import FOLDER, read_record
from spacy_psa.analysis.figures import PALETTE, new_figure, save_figure

TARGET = PICTURES / "active.svg"
TITLES = {
    "random": "random sentences",
    "entropy": "unsure sentences",
    "spans": "unsure words of unsure sentences",
}


def draw(target: Path) -> None:
    """Draw the figure from the records."""
    found = (FOLDER / "active" / "results").glob("*.json")
    records = {path.stem: read_record(path) for path in found}
    figure = new_figure(8.5, 4.5)
    axes = figure.add_subplot()
    for strategy, colour in zip(STRATEGIES, PALETTE):
        rounds = by_round(records, strategy)
        for system, style in zip(SYSTEMS, ("-", ":")):
            points = [
                (mean(row["decisions"] for row in rows), 100 * mean(scores(rows, system, "test")))
                for rows in rounds
                if scores(rows, system, "test")
            ]
            title = f"{TITLES[strategy]}{' (spaCy)' if system == 'spacy' else ''}"
            if points:
                axes.plot(*zip(*points), style, marker="o", color=colour, label=title)
    (rows,) = by_round(records, "all")
    for system, style in zip(SYSTEMS, ("-", ":")):
        whole = scores(rows, system, "test")
        if whole:
            title = f"all {rows[0]['sentences']:,} sentences: {rows[0]['decisions']:,} decisions"
            title += "" if system == "crf_ner" else " (spaCy)"
            where: dict[str, Any] = {"linestyle": style, "color": "#4a5568", "linewidth": 1}
            axes.axhline(100 * mean(whole), label=title, **where)
    axes.set_xlabel("decisions of an annotator")
    axes.set_ylabel("F1 on the test set of CoNLL-2003")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    lighten(axes)
    axes.legend(loc="lower right", frameon=False)
    save_figure(figure, target)


def parser() -> ArgumentParser:
    return picture_parser("benchmarks.active.draw", __doc__, TARGET)


if __name__ == "__main__":
    draw(parser().parse_args().target)
