"""Draw words a second and memory along the axes, as an SVG for light and dark pages.

usage: python -m benchmarks.growth.draw [TARGET.svg]

The default target is docs/pictures/growth.svg.
"""

from pathlib import Path
from typing import Any

from benchmarks.growth.figures import at
from benchmarks.lookup import Lookup, records_of
from benchmarks.script import lighten, picture_path
from spacy_psa.analysis.figures import new_figure, save_figure

TITLES = {
    "sentence": "words in a sentence",
    "document": "words in a document",
    "labels": "labels",
    "batch": "texts in a batch",
    "vocabulary": "distinct words",
}
COLORS = {
    "bilstm_crf": "#3a7fc8",
    "bilstm_crf, transition": "#7fb2e5",
    "psa": "#2f9e6e",
    "spacy-accuracy": "#c2571a",
    "spacy-efficiency": "#e3a15c",
    "flair": "#8a63b8",
}


def draw(target: Path) -> None:
    """Draw the figure from the records."""
    records = Lookup("growth")
    titles = {axis: title for axis, title in TITLES.items() if axis in records_of("growth")}
    figure = new_figure(3.2 * len(titles), 6.0)
    grid = figure.subplots(2, len(titles), sharex="col", sharey="row")
    lines = {}
    for (upper, lower), (axis, title) in zip(grid.T, titles.items()):
        (rows,) = records.raw(f"{axis}:rows")
        for name in rows:
            points = [int(point) for point in rows[name]]
            rates, megabytes = zip(*(at(axis, name, point) for point in points))
            style: dict[str, Any] = {"color": COLORS[name], "markersize": 4}
            (lines[name],) = upper.plot(points, rates, "o-", **style)
            lower.plot(points, [max(each, 1) for each in megabytes], "o-", **style)
        for axes in (upper, lower):
            axes.set(xscale="log", yscale="log")
            lighten(axes)
        lower.set_xlabel(title)
    grid[0, 0].set_ylabel("words a processor second")
    grid[1, 0].set_ylabel("MB more than the open pipeline")
    figure.legend(
        lines.values(), lines, loc="outside upper center", ncols=len(lines), frameon=False
    )
    save_figure(figure, target)


def main() -> None:
    draw(picture_path(globals(), "growth.svg"))


if __name__ == "__main__":
    main()
