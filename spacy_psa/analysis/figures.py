"""Figures without a window, their formats and colours, and fonts for all characters."""

import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    import matplotlib.figure

Figure: TypeAlias = "matplotlib.figure.Figure"
PALETTE = ("#2b6cb0", "#c05621", "#2f855a", "#97266d", "#b7791f", "#4a5568", "#0d9488", "#6b46c1")
"""Colours of lines, in turn."""
SHOWN = 8
"""The most characters that a warning names."""
NOT_DRAWN = ("Cc", "Cf", "Mn")
"""Categories of characters that need no glyph of their own: controls, formats, accents."""
REGULAR = (400, "normal", "regular")
"""The weights of regular fonts, as matplotlib lists them."""


def check_matplotlib() -> None:
    """Raise an InputError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(
            "a figure needs matplotlib, which is not installed: pip install 'spacy-psa[plot]'"
        ) from error


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure; its width and height are in inches."""
    check_matplotlib()
    # pyplot would choose a window system and keep the figure.
    import matplotlib.figure
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def check_picture(path: Path) -> str:
    """Return the format of a picture, by the ending of its name."""
    figure = new_figure(1.0, 1.0)
    kind = path.suffix.removeprefix(".").lower()
    if kind not in figure.canvas.get_supported_filetypes():
        raise InputError(f"{path}: is not the name of an image; choose .png, .svg or .pdf")
    return kind


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure; the file appears whole or not at all.

    A "$" in a text is a "$", and not the beginning of a formula. Characters that the usual font
    does not have are drawn in an installed font that has them; see `fonts_of`.
    """
    from matplotlib import rc_context

    kind = check_picture(path)
    _turn_off_math(figure)
    # Without a date and with fixed names, the same figure makes the same file.
    still = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    settings = rc_context({"svg.hashsalt": "spacy-psa"})
    with atomic_path(path) as temporary, settings, fonts_of(figure):
        figure.savefig(temporary, dpi=120, format=kind, metadata=still)


def _turn_off_math(figure: Figure) -> None:
    """Draw texts as they are written; the numbers of an axis of logarithms are formulas."""
    from matplotlib.text import Text

    axes = [axis for each in figure.axes for axis in (each.xaxis, each.yaxis)]
    numbers = {text for axis in axes if axis.get_scale() == "log" for text in axis.findobj(Text)}
    for text in figure.findobj(Text):
        if text not in numbers:
            text.set_parse_math(False)


def colours(count: int) -> list[str]:
    """Return the colours of `count` lines."""
    return [PALETTE[number % len(PALETTE)] for number in range(count)]


def fonts_for(characters: str) -> tuple[list[str], str]:
    """Find installed fonts for the characters that the usual font does not have.

    Returns the names of the fonts, and the characters that no installed font has, in their order.
    """
    from matplotlib.font_manager import FontProperties, findfont, fontManager

    drawn = {each for each in characters if unicodedata.category(each) not in NOT_DRAWN}
    missing = drawn - _had(drawn, findfont(FontProperties()))
    names: list[str] = []
    for font in sorted(fontManager.ttflist, key=lambda font: (font.name, font.fname)):
        if not missing:
            break
        # The font of last resort has a box for each character.
        if font.style == "normal" and font.weight in REGULAR and "Last Resort" not in font.name:
            had = _had(missing, font.fname)
            names += [font.name] if had else []
            missing -= had
    return names, "".join(sorted(missing, key=characters.index))


def _had(characters: set[str], file: str) -> set[str]:
    """Return the characters that a font file has; none if it was removed or is damaged."""
    from matplotlib.font_manager import get_font

    try:
        has = get_font(file).get_charmap()
    except (OSError, RuntimeError):
        return set()
    return {character for character in characters if ord(character) in has}


@contextmanager
def fonts_of(figure: Figure) -> Iterator[None]:
    """Draw the texts of a figure in fonts that have their characters, inside of the block.

    One warning names the characters that no installed font has; the figure has boxes for them.
    """
    from matplotlib.text import Text

    texts = figure.findobj(Text)
    names, missing = fonts_for("".join(text.get_text() for text in texts))
    if missing:
        shown = " ".join(missing[:SHOWN]) + " ..." * (len(missing) > SHOWN)
        warnings.warn(
            f"no installed font has the characters {shown}, so the figure has boxes for them: "
            "install a font of their script, such as Noto Sans CJK for Chinese",
            stacklevel=4,  # where `save_figure` was called
        )
    for text in texts if names else ():
        text.set_fontfamily([*text.get_fontfamily(), *names])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        yield
