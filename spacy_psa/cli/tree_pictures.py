"""Constituency trees as pictures, in SVG or text."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from spacy_psa.annotation.writer import Encode, Writer
from spacy_psa.cli.output import open_output
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from nltk import Tree
    from spacy.tokens import Doc

    from spacy_psa.pipeline.parser.tree_drawing import Drawing


def check_picture(path: Path) -> None:
    """Check that pictures can be written to a file of this name.

    Raises:
        InputError: if the name does not end in .svg or .txt, or if it ends in .svg and svgling is
            not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".txt"):
        raise InputError(f"{path}: the name of the output must end in .svg or .txt")
    if suffix == ".svg":
        check_drawing(path, "give the name of a .txt file")


def check_drawing(path: Path, otherwise: str) -> None:
    """Check that svgling is installed.

    Args:
        path: the file to write, for the error.
        otherwise: what the user can do instead, for the error.

    Raises:
        InputError: if it is not.
    """
    from spacy_psa.pipeline.parser.tree_drawing import can_draw

    if not can_draw():
        raise InputError(
            f'{path}: drawing SVG needs svgling: pip install "spacy-psa[trees]", or {otherwise}'
        )


@contextmanager
def open_pictures(path: Path, key: str) -> Iterator[Writer]:
    """Open a writer to `path`; the file appears complete at the end, or not at all.

    Args:
        path: the file.
        key: the span group with the constituents.

    Raises:
        InputError: if the file cannot be written.
    """
    with open_output(path) as stream:
        svg = path.suffix.lower() == ".svg"
        writer: Writer = SvgWriter(stream) if svg else TextWriter(stream)
        writer.encode = partial(svg_trees if svg else text_trees, key=key)
        yield writer
        writer.finish()


class TextWriter:
    """Writes each tree as lines of text, with an empty line after it.

    Args:
        stream: the bytes are written to it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.encode: Encode = text_trees

    def write(self, row: list[str]) -> None:
        for tree in row:
            self.stream.write(f"{tree}\n\n".encode())

    def finish(self) -> None:
        pass


def text_trees(doc: "Doc", key: str = "constituents") -> list[str]:
    """Draw each tree of a document as lines of text.

    Args:
        doc: the document.
        key: the span group with the constituents.

    Raises:
        InputError: if a tree is too deep.
    """
    with _not_too_deep():
        drawn = [_drawn(tree).splitlines() for tree in _trees(doc, key)]
    stripped = [[line.rstrip() for line in lines] for lines in drawn]
    return ["\n".join(line for line in lines if line) for lines in stripped]


class SvgWriter:
    """Writes all trees into one drawing, one below the other.

    Args:
        stream: the bytes are written to it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.encode: Encode = svg_trees
        self.drawings: list[Drawing] = []

    def write(self, row: "list[Drawing]") -> None:
        self.drawings += row

    def finish(self) -> None:
        from spacy_psa.pipeline.parser.tree_drawing import one_below_the_other

        self.stream.write(one_below_the_other(self.drawings).encode())


def svg_trees(doc: "Doc", key: str = "constituents") -> "list[Drawing]":
    """Draw each tree of a document as SVG.

    Args:
        doc: the document.
        key: the span group with the constituents.

    Raises:
        InputError: if a tree is too deep.
    """
    from spacy_psa.pipeline.parser.tree_drawing import draw

    with _not_too_deep():
        return draw(_trees(doc, key))


@contextmanager
def _not_too_deep() -> Iterator[None]:
    try:
        yield
    except RecursionError as error:
        raise InputError("a tree is too deep to draw; set sentence boundaries") from error


def _trees(doc: "Doc", key: str) -> "list[Tree | str]":
    """Give the trees of a doc, without parts of speech if it has none.

    If the constituents have probabilities, they stand behind the labels.
    """
    from spacy_psa.pipeline.parser.constituents import bracketed, word_sentences
    from spacy_psa.pipeline.parser.extensions import parse_trees
    from spacy_psa.pipeline.parser.sentence_tree import in_order

    if not doc.text.strip():
        return []
    group = in_order(doc, key)
    if group.attrs.get("scores") is None:
        trees: list[Tree] = parse_trees(doc, key)
    else:
        scored = list(zip(group, group.attrs["scores"], strict=True))
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
