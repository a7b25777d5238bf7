"""Constituency trees as pictures, in SVG or text."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from spacy_psa.cli.output import Writer, open_output
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from nltk import Tree
    from spacy.tokens import Doc

GAP = 24
"""The distance between two trees, in pixels."""


def check_picture(path: Path) -> None:
    """Check that pictures can be written to a file of this name.

    Raises:
        InputError: if the name does not end in .svg or .txt, or if it ends in .svg and svgling is
            not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".txt"):
        raise InputError(f"{path}: the name of the output must end in .svg or .txt")
    if suffix == ".svg" and importlib.util.find_spec("svgling") is None:
        raise InputError(
            f'{path}: drawing SVG needs svgling: pip install "spacy-psa[trees]", or give the name '
            "of a .txt file"
        )


@contextmanager
def open_pictures(path: Path) -> Iterator[Writer]:
    """Open a writer to `path`; the file appears complete at the end, or not at all.

    Raises:
        InputError: if the file cannot be written.
    """
    with open_output(path) as stream:
        svg = path.suffix.lower() == ".svg"
        writer: Writer = SvgWriter(stream) if svg else TextWriter(stream)
        yield writer
        writer.finish()


class TextWriter:
    """Writes each tree as lines of text, with an empty line after it.

    Args:
        stream: the bytes are written to it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream

    def write(self, doc: "Doc") -> None:
        for tree in _trees(doc):
            lines = (line.rstrip() for line in _drawn(tree).splitlines())
            self.stream.write(("\n".join(line for line in lines if line) + "\n\n").encode("utf8"))

    def finish(self) -> None:
        pass


class SvgWriter:
    """Writes all trees into one drawing, one below the other.

    Args:
        stream: the bytes are written to it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.drawings: list[Any] = []

    def write(self, doc: "Doc") -> None:
        from svgling import draw_tree

        self.drawings += [draw_tree(tree).get_svg() for tree in _trees(doc)]

    def finish(self) -> None:
        from svgwrite import Drawing
        from svgwrite.shapes import Rect

        sizes = [(_pixels(d["width"]), _pixels(d["height"])) for d in self.drawings]
        width = max((width for width, _ in sizes), default=0) + 2 * GAP
        height = sum(height + GAP for _, height in sizes) + GAP
        page = Drawing(size=(f"{width}px", f"{height}px"))
        page.viewbox(0, 0, width, height)
        page.add(Rect(size=("100%", "100%"), fill="white"))
        top = GAP
        for drawing, (_, high) in zip(self.drawings, sizes, strict=True):
            drawing["x"], drawing["y"] = GAP, top
            page.add(drawing)
            top += high + GAP
        self.stream.write(page.tostring().encode("utf8"))


def _pixels(size: str) -> int:
    return round(float(size.removesuffix("px")))


def _trees(doc: "Doc") -> "list[Tree | str]":
    """Give the trees of a doc, without parts of speech if it has none.

    If the constituents have probabilities, they stand behind the labels.
    """
    from spacy_psa.pipeline.parser.constituents import KEY, bracketed, word_sentences

    if doc.spans[KEY].attrs.get("scores") is None:
        trees = doc._.parse_trees
    else:
        scored = list(zip(doc.spans[KEY], doc.spans[KEY].attrs["scores"], strict=True))
        trees = []
        for start, end, words in word_sentences(doc):
            nodes = [
                (span.start, span.end, f"{span.label_} {score:.2f}")
                for span, score in scored
                if start <= span.start and span.end <= end
            ]
            trees += [bracketed(doc, words, nodes)] if len(words) else []
    return trees if doc.has_annotation("TAG") else [_untagged(tree) for tree in trees]


def _untagged(tree: "Tree") -> "Tree | str":
    from nltk import Tree

    if len(tree) == 1 and isinstance(tree[0], str):
        return tree[0]
    return Tree(tree.label(), [_untagged(child) for child in tree])


def _drawn(tree: "Tree | str") -> str:
    from nltk.tree.prettyprinter import TreePrettyPrinter

    if isinstance(tree, str):
        return tree
    # Words are numbered, because the printer would put words next to constituents first.
    numbered = tree.copy(deep=True)
    for i, place in enumerate(tree.treepositions("leaves")):
        numbered[place] = i
    return TreePrettyPrinter(numbered, tree.leaves()).text(unicodelines=True)
