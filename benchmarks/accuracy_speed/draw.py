"""Draw F1 against words a second for all systems, as an SVG.

usage: python -m benchmarks.accuracy_speed.draw [TARGET.svg]

The default target is docs/pictures/systems.svg, which the README shows.
"""

from pathlib import Path

from benchmarks.accuracy_speed.speed import OWN, SYSTEMS
from benchmarks.lookup import Lookup
from benchmarks.script import lighten, picture_path
from spacy_psa.analysis.figures import new_figure, save_figure

OURS, SPACY = "#3a7fc8", "#c2571a"
# Titles that are not to the right of their points: shift in points, and alignment.
PLACES = {
    "psa_arxiv": (0, 9, "center"),
    "psa_transformer": (-9, 3, "right"),
    "psa-half": (-4, -15, "right"),
    "bilstm_crf": (2, -18, "center"),
    "cross": (9, 1, "left"),
    "self_attentive": (10, -31, "center"),
    "psa": (-9, -11, "right"),
    "tener": (-9, -4, "right"),
    "idcnn": (9, -7, "left"),
    "finetuned": (-9, -4, "right"),
}
GAP = 85  # F1 that no system is near; the axis is cut there


def draw(target: Path) -> None:
    """Draw the figure from the records."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    records = Lookup(OWN)
    rows = "speed:annotation:rows"
    rates = {n: records.get(f"{rows}:{n}:per_cpu_second:median")[0] for n in SYSTEMS}
    scores = {name: records.test(system.record)[0] for name, system in SYSTEMS.items()}
    figure = new_figure(8.5, 5.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    for name, system in SYSTEMS.items():
        axes = upper if scores[name] > GAP else lower
        color, marker = (SPACY, "s") if system.record.startswith(OWN) else (OURS, "o")
        at = rates[name], scores[name]
        axes.plot(*at, marker, color=color, markersize=8)
        across, up, align = PLACES.get(name, (9, -4, "left"))
        axes.annotate(
            system.title, at, (across, up), textcoords="offset points", ha=align, color=color
        )
    for axes, part in ((upper, [s for s in scores.values() if s > GAP]), (lower, [])):
        part = part or [s for s in scores.values() if s < GAP]
        axes.set_ylim(min(part) - 0.5, max(part) + 0.5)
        lighten(axes)
    upper.spines["bottom"].set_visible(False)
    upper.tick_params(bottom=False)
    cut = {"marker": [(-1, -0.6), (1, 0.6)], "markersize": 9, "color": "#768390", "clip_on": False}
    upper.plot([0], [0], transform=upper.transAxes, **cut)
    lower.plot([0], [1], transform=lower.transAxes, **cut)
    low, high = min(rates.values()) / 1.15, max(rates.values()) * 2.1
    lower.set_xscale("log")
    lower.set_xlim(low, high)
    ticks = [t for t in (500, 1000, 2000, 5000, 10_000, 20_000, 50_000) if low < t < high]
    lower.xaxis.set_major_locator(FixedLocator(ticks))
    lower.xaxis.set_minor_locator(NullLocator())
    lower.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    lower.set_xlabel("words a second on one CPU thread")
    figure.supylabel("F1 on the test set of CoNLL-2003", fontsize="medium")
    save_figure(figure, target)


def main() -> None:
    draw(picture_path(globals(), "systems.svg"))


if __name__ == "__main__":
    main()
