"""Constituency trees drawn in SVG, one below the other. Drawing needs svgling."""

import importlib.util
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nltk import Tree

GAP = 24
"""The distance between two trees, in pixels."""
NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that an XML file cannot have, also not escaped."""


class Drawing(NamedTuple):
    """A drawing in SVG; its width and height are in pixels."""

    width: int
    height: int
    markup: str


class Trees(list["Tree"]):
    """A list of nltk trees that a notebook shows as a drawing."""

    def _repr_svg_(self) -> str | None:
        if not can_draw() or not self:
            return None  # the notebook shows the brackets
        try:
            return one_below_the_other(draw(self))
        except RecursionError:
            return None


def can_draw() -> bool:
    """Tell whether svgling is installed."""
    return importlib.util.find_spec("svgling") is not None


def draw(trees: "Iterable[Tree | str]") -> list[Drawing]:
    """Draw trees; RecursionError if one is too deep."""
    from svgling import draw_tree

    drawings = (draw_tree(tree).get_svg() for tree in trees)
    return [
        Drawing(_pixels(d["width"]), _pixels(d["height"]), NO_XML.sub("\ufffd", d.tostring()))
        for d in drawings
    ]


def one_below_the_other(drawings: Sequence[Drawing]) -> str:
    """Put drawings into one, on a white ground."""
    from svgwrite import Drawing as Page
    from svgwrite.shapes import Rect

    width = max((drawing.width for drawing in drawings), default=0) + 2 * GAP
    height = sum(drawing.height + GAP for drawing in drawings) + GAP
    page = Page(size=(f"{width}px", f"{height}px"))
    page.viewbox(0, 0, width, height)
    page.add(Rect(size=("100%", "100%"), fill="white"))
    parts = [page.tostring().removesuffix("</svg>")]
    top = GAP
    for drawing in drawings:
        parts.append(drawing.markup.replace("<svg ", f'<svg x="{GAP}" y="{top}" ', 1))
        top += drawing.height + GAP
    return "".join([*parts, "</svg>"])


def _pixels(size: str) -> int:
    return round(float(size.removesuffix("px")))
