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
    from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

    def left_by(file: str) -> set[str]:
        try:
            has = get_font(file).get_charmap()
        except (OSError, RuntimeError):  # removed since matplotlib listed it, or damaged
            return missing
        return {character for character in missing if ord(character) not in has}

    missing = {each for each in characters if unicodedata.category(each) not in ("Cc", "Cf", "Mn")}
    missing = left_by(findfont(FontProperties()))
    names: list[str] = []
    for font in sorted(fontManager.ttflist, key=lambda font: (font.name, font.fname)):
        plain = font.style == "normal" and font.weight in (400, "normal", "regular")
        # The font of last resort has a box for each character.
        if missing and plain and not font.name.startswith("Last Resort"):
            left = left_by(font.fname)
            if left != missing:
                names.append(font.name)
                missing = left
    return names, "".join(sorted(missing, key=characters.index))


@contextmanager
def fonts_of(figure: "Figure") -> Iterator[None]:
    """Draw the texts of a figure in fonts that have their characters, where one is installed.

    For characters that no installed font has, one warning says so; the figure has boxes for them.
    """
    from matplotlib import rc_context, rcParams
    from matplotlib.text import Text

    texts = figure.findobj(Text)
    names, missing = fonts_for("".join(text.get_text() for text in texts))
    if missing:
        shown = " ".join(missing[:SHOWN]) + " ..." * (len(missing) > SHOWN)
        warnings.warn(
            f"no installed font has the characters {shown}, so the figure has boxes for them: "
            "install a font of their script, such as Noto Sans CJK for Chinese",
            stacklevel=2,
        )
    for text in texts if names else ():
        text.set_fontfamily([*text.get_fontfamily(), *names])
    # Some texts, such as numbers on axes, are made while the figure is drawn.
    with rc_context({"font.family": [*rcParams["font.family"], *names]}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        yield
