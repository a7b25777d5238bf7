"""Draw F1 against words a second for all systems, as an SVG.

usage: python -m benchmarks.accuracy_speed.draw [TARGET.svg]

The default target is docs/pictures/systems.svg, which the README shows.
"""

import argparse
from pathlib import Path

import matplotlib

from benchmarks.accuracy_speed.systems import OWN, SYSTEMS
from benchmarks.accuracy_speed.tables import words_per_second
from benchmarks.record import FOLDER, read_record
from benchmarks.tables import test_f
from spacy_psa.corpora.atomic import atomic_path

TARGET = FOLDER.parent / "docs" / "pictures" / "systems.svg"
OURS, SPACY = "#2563a8", "#c2571a"
# Where a title stands, if not to the right of its point: shift in points, and its alignment.
PLACES: dict[str, tuple[float, float, str]] = {}


def draw(target: Path) -> None:
    """Draw the figure from the records."""
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "systems", "svg.fonttype": "none"})
    from matplotlib import pyplot
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    rates = words_per_second(read_record(FOLDER / OWN / "results" / "speed.json"))
    figure, axes = pyplot.subplots(figsize=(8.5, 4.8), layout="constrained")
    for name, system in SYSTEMS.items():
        x, y = rates[name], 100 * test_f(system.read())
        color, marker = (SPACY, "s") if system.experiment == OWN else (OURS, "o")
        axes.plot(x, y, marker, color=color, markersize=8)
        across, up, align = PLACES.get(name, (9, -4, "left"))
        axes.annotate(
            system.title, (x, y), (across, up), textcoords="offset points", ha=align, color=color
        )
    axes.set_xscale("log")
    low, high = min(rates.values()), max(rates.values())
    axes.set_xlim(low / 1.15, high * 1.6)
    ticks = [t for t in (1000, 2000, 5000, 10_000, 20_000, 50_000) if low / 1.15 < t < high * 1.6]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("words a second on one CPU thread")
    axes.set_ylabel("F1 on the test set of CoNLL-2003")
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    with atomic_path(target) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy_speed.draw",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("target", nargs="?", type=Path, default=TARGET)
    return found


def main() -> None:
    draw(parser().parse_args().target)


if __name__ == "__main__":
    main()
