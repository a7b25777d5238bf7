"""What all pictures share: a figure without a window, its formats and colours."""

from pathlib import Path
from typing import TYPE_CHECKING

from spacy_psa.analysis.fonts import fonts_of
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PALETTE = ("#2b6cb0", "#c05621", "#2f855a", "#97266d", "#b7791f", "#4a5568", "#0d9488", "#6b46c1")
"""Colours of lines, in turn."""


def check_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        InputError: if it is not.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(
            "a figure needs matplotlib, which is not installed: pip install 'spacy-psa[plot]'"
        ) from error


def new_figure(width: float, height: float) -> "Figure":
    """Make an empty figure.

    Args:
        width: its width in inches.
        height: its height in inches.

    Raises:
        InputError: if matplotlib is not installed.
    """
    check_matplotlib()
    # pyplot would choose a window system and keep the figure.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def check_picture(path: Path) -> str:
    """Give the format of a picture, by the ending of its name.

    Raises:
        InputError: if matplotlib is not installed or has no such format.
    """
    figure = new_figure(1.0, 1.0)
    kind = path.suffix.removeprefix(".").lower()
    if kind not in figure.canvas.get_supported_filetypes():
        raise InputError(f"{path}: is not the name of an image; take .png, .svg or .pdf")
    return kind


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure; the file appears whole or not at all.

    A "$" in a text is a "$", and begins no formula. Characters that the usual font does not have
    are drawn in an installed font that has them; see `fonts_of`.

    Args:
        figure: the figure.
        path: the image file; its ending gives the format.

    Raises:
        InputError: if the path cannot be written, or its ending is not an image format.
    """
    from matplotlib import rc_context

    kind = check_picture(path)
    _turn_off_math(figure)
    # Without a date and with fixed names, the same figure gives the same file.
    still = {"Date": None} if kind in ("svg", "pdf") else None
    settings = rc_context({"svg.hashsalt": "spacy-psa"})
    with atomic_path(path) as temporary, settings, fonts_of(figure):
        figure.savefig(temporary, dpi=120, format=kind, metadata=still)


def _turn_off_math(figure: "Figure") -> None:
    """Draw texts as they are written; the numbers of an axis of logarithms are formulas."""
    from matplotlib.text import Text

    axes = [axis for each in figure.axes for axis in (each.xaxis, each.yaxis)]
    numbers = {text for axis in axes if axis.get_scale() == "log" for text in axis.findobj(Text)}
    for text in figure.findobj(Text):
        if text not in numbers:
            text.set_parse_math(False)


def colours(count: int) -> list[str]:
    """Give colours for so many lines."""
    return [PALETTE[number % len(PALETTE)] for number in range(count)]
