"""Draws reliability diagrams: how often predictions of a certain confidence are right."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from spacy_psa.analysis.figures import new_figure, save_figure
from spacy_psa.scoring.calibration import Bin, calibration_error


def draw_reliability(diagrams: Mapping[str, Sequence[Bin]], path: Path) -> None:
    """Draw reliability diagrams side by side and write them to an image file.

    The upper part shows the share of right spans against the mean confidence of each bin; it is on
    the diagonal if confidences can be trusted. The lower part shows the number of spans in each
    bin.

    Args:
        diagrams: the bins of each diagram, by its title.
        path: the image file.

    Raises:
        InputError: if matplotlib is not installed, if the path cannot be written, or if its
            ending is not an image format of matplotlib.
    """
    figure = new_figure(4.2 * len(diagrams), 5.0)
    axes = figure.subplots(
        2, len(diagrams), squeeze=False, sharex=True, sharey="row", height_ratios=[3, 1]
    )
    for column, (title, bins) in enumerate(diagrams.items()):
        above, below = axes[0][column], axes[1][column]
        filled = [b for b in bins if b.size]
        centres = [(b.lower + b.upper) / 2 for b in filled]
        widths = [b.upper - b.lower for b in filled]
        box = {"width": widths, "edgecolor": "white", "linewidth": 0.8}
        above.bar(centres, [b.accuracy or 0.0 for b in filled], color="#7aa6d6", **box)
        above.plot([0, 1], [0, 1], color="#888888", linewidth=1, linestyle="--")
        above.plot(
            [b.confidence or 0.0 for b in filled],
            [b.accuracy or 0.0 for b in filled],
            color="#b8442f",
            marker="o",
            markersize=4,
            linewidth=1.2,
        )
        error = calibration_error(bins)
        above.set_title(title if error is None else f"{title}: ECE {error:.4f}")
        below.bar(centres, [b.size for b in filled], color="#bbbbbb", **box)
        below.set(yscale="log", xlim=(0, 1), xlabel="confidence")
        above.set(ylim=(0, 1.02))
        for each in (above, below):
            each.grid(alpha=0.3)
            each.set_axisbelow(True)
    axes[0][0].set_ylabel("fraction right")
    axes[1][0].set_ylabel("spans")
    save_figure(figure, path)
