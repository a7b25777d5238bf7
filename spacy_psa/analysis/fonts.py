"""Fonts for the characters that matplotlib's usual font does not have, such as Chinese ones."""

import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 8
"""The most characters that a warning names."""
NOT_DRAWN = ("Cc", "Cf", "Mn")
"""Categories of characters that need no glyph of their own: controls, formats, accents."""
REGULAR = (400, "normal", "regular")
"""The weights of regular fonts, as matplotlib lists them."""


def fonts_for(characters: str) -> tuple[list[str], str]:
    """Find installed fonts for what the usual font does not have.

    Args:
        characters: the characters to draw.

    Returns:
        The names of the fonts, none if the usual one has all; and the characters that no installed
        font has, in their order.

    Examples:
        >>> fonts_for("Ada met Bob")
        ([], '')
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
    """The characters that a font file has; none if it was removed or is damaged."""
    from matplotlib.font_manager import get_font

    try:
        has = get_font(file).get_charmap()
    except (OSError, RuntimeError):
        return set()
    return {character for character in characters if ord(character) in has}


@contextmanager
def fonts_of(figure: "Figure") -> Iterator[None]:
    """Draw the texts of a figure in fonts that have their characters, where one is installed.

    For characters that no installed font has, one warning says so; the figure has boxes for them.

    Args:
        figure: the figure with its texts; what is drawn inside the block has them in these fonts.
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
