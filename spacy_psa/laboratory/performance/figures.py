"""Draws a record of `spacy_psa.laboratory.performance.sections`."""

from pathlib import Path
from typing import Any

from spacy_psa.corpora.atomic import atomic_path


def draw(record: dict[str, Any], target: Path) -> None:
    """Draw the sections of a record into one picture.

    Annotation and training are bars; sentence lengths and numbers of tags are lines. Other sections
    are not drawn, and without any to draw no file is written.

    Args:
        record: the record, see `spacy_psa.laboratory.performance.sections`.
        target: the file to write; its ending names the format, PNG by default.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    bars = {"annotation": "words a second", "training": "steps a second"}
    lines = {"lengths": "words in a sentence", "labels": "tags"}
    shown = [name for name in (*bars, *lines) if record.get(name, {}).get("rows")]
    if not shown:
        return
    figure, grid = pyplot.subplots(
        1, len(shown), figsize=(5.5 * len(shown), 4), layout="constrained", squeeze=False
    )
    for axes, name in zip(grid[0], shown):
        if name in bars:
            _bars(axes, record[name]["rows"], bars[name])
        else:
            _lines(axes, record[name]["rows"], lines[name])
    # The format is given, because the temporary name does not end in it.
    with atomic_path(target) as temporary:
        figure.savefig(temporary, format=target.suffix.lstrip(".") or "png", dpi=120)
    pyplot.close(figure)


def _bars(axes: Any, rows: dict[str, Any], unit: str) -> None:
    names = list(rows)
    rates = [rows[name]["per_cpu_second"] for name in names]
    middle = [rate["median"] for rate in rates]
    ends = [
        [rate["median"] - rate["least"] for rate in rates],
        [rate["most"] - rate["median"] for rate in rates],
    ]
    axes.barh(names, middle, xerr=ends, color="#4c78a8", ecolor="#333333", capsize=3)
    axes.invert_yaxis()
    axes.set_xlabel(f"{unit} of processor time; whiskers: all runs")
    axes.grid(axis="x", alpha=0.3)


def _lines(axes: Any, rows: dict[str, Any], unit: str) -> None:
    for name, row in rows.items():
        micros = [1e6 / rate["per_cpu_second"]["median"] for rate in row.values()]
        axes.plot([int(count) for count in row], micros, "o-", label=name)
    axes.set(xscale="log", ylim=(0, None), xlabel=unit, ylabel="µs a word")
    axes.set_xticks([int(count) for count in row], list(row))
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
