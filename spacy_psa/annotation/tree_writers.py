"""Constituency trees as files: brackets, JSON lines, drawings or `.spacy`."""

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from spacy_psa.annotation.drawing import not_too_deep
from spacy_psa.annotation.rows import docbin_bytes, json_line, json_row
from spacy_psa.annotation.writers import DocBinWriter, Encode, JsonlWriter, Writer, opened
from spacy_psa.corpora.format_by_name import format_of
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from nltk import Tree
    from spacy.tokens import Doc

    from spacy_psa.pipeline.parser.tree_drawing import Drawing


TreeFormat = Literal["auto", "brackets", "indented", "jsonl", "svg", "spacy"]
"""The format of trees; `auto` goes by the file name."""

SUFFIXES: dict[str, TreeFormat] = {
    "": "brackets",
    ".txt": "brackets",
    ".brackets": "brackets",
    ".parse": "brackets",
    ".mrg": "indented",
    ".jsonl": "jsonl",
    ".svg": "svg",
    ".spacy": "spacy",
}
GAP = "(())"
"""The tree of a sentence that has none, so that lines stay aligned."""


def resolve_tree_format(path: Path, wanted: TreeFormat) -> TreeFormat:
    """Find the format of the output; a drawing needs svgling."""
    choices = "--format brackets, indented, jsonl, svg or spacy"
    form = format_of(path, wanted, SUFFIXES, choices)
    if form == "svg":
        _check_svgling(path, "choose another --format")
    return form


def check_picture(path: Path) -> None:
    """Raise an InputError if `open_pictures` cannot write a file of this name."""
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".txt"):
        raise InputError(f"{path}: the name of the output must end in .svg or .txt")
    if suffix == ".svg":
        _check_svgling(path, "choose the name of a .txt file")


def _check_svgling(path: Path, otherwise: str) -> None:
    from spacy_psa.pipeline.parser.tree_drawing import can_draw

    if not can_draw():
        raise InputError(
            f'{path}: drawing SVG needs svgling: pip install "spacy-psa[trees]", or {otherwise}'
        )


def open_tree_writer(
    path: Path, form: TreeFormat, *, key: str, gaps: bool, text_key: str = "text"
) -> AbstractContextManager[Writer]:
    """Open a writer of trees to `path`; the file appears complete at the end, or not at all.

    "-" means stdout. `key` is the span group with the constituents. With `gaps`, a sentence without
    words is "(())" in brackets, so that lines stay aligned.
    """
    if form == "svg":
        return opened(path, SvgWriter, partial(svg_trees, key=key))
    if form == "spacy":
        return opened(path, DocBinWriter, _docbin_with_trees)
    if form == "jsonl":
        return opened(path, JsonlWriter, partial(_json_with_trees, key=key, text_key=text_key))
    encode = partial(brackets, key=key, indented=form == "indented", gaps=gaps)
    return opened(path, LineWriter, encode)


def open_pictures(path: Path, key: str) -> AbstractContextManager[Writer]:
    """Open a writer of drawings to an .svg or .txt file, as `open_tree_writer` does."""
    if path.suffix.lower() == ".svg":
        return opened(path, SvgWriter, partial(svg_trees, key=key))
    return opened(path, LineWriter, partial(text_trees, key=key))


class LineWriter(Writer):
    """Writes each tree on a line, or on several lines."""

    def write(self, row: list[str]) -> None:
        for tree in row:
            self.stream.write(f"{tree}\n".encode())


class SvgWriter(Writer):
    """Writes all trees into one drawing, one below the other."""

    def __init__(self, stream: BinaryIO, encode: Encode) -> None:
        super().__init__(stream, encode)
        self.drawings: list[Drawing] = []

    def write(self, row: "list[Drawing]") -> None:
        self.drawings += row

    def finish(self) -> None:
        from spacy_psa.pipeline.parser.tree_drawing import one_below_the_other

        self.stream.write(one_below_the_other(self.drawings).encode())


def brackets(doc: "Doc", key: str, indented: bool = False, gaps: bool = False) -> list[str]:
    """Write the tree of each sentence of a document in brackets, from the span group `key`.

    A tree has several lines if it is `indented`. With `gaps`, a sentence without words is "(())".
    """
    from spacy_psa.pipeline.parser.extensions import parse_string, parse_trees
    from spacy_psa.sentences import sentence_bounds

    if not doc.text.strip():
        return [GAP] if gaps else []
    sentences = [doc[start:end] for start, end in sentence_bounds(doc)]
    filled = [sentence for sentence in sentences if sentence.text.strip()]
    try:
        trees = iter(
            [str(tree) for tree in parse_trees(doc, key)]
            if indented
            else [parse_string(sentence, key) for sentence in filled]
        )
    except RecursionError as error:
        raise InputError("a tree is too deep to indent; choose --format brackets") from error
    if not gaps:
        return list(trees)
    return [next(trees) if sentence.text.strip() else GAP for sentence in sentences]


def _json_with_trees(doc: "Doc", key: str, text_key: str) -> tuple[bytes, list[str]]:
    _follow_tokens(doc)
    row, replaced = json_row(doc, False, text_key)
    replaced += ["trees"] if "trees" in row else []
    return json_line({**row, "trees": brackets(doc, key)}), replaced


def _docbin_with_trees(doc: "Doc") -> bytes:
    _follow_tokens(doc)
    return docbin_bytes(doc)


def _follow_tokens(doc: "Doc") -> None:
    """Write all spans at the tokens that the doc has now, so that it can be saved."""
    from spacy_psa.pipeline.parser.sentence_tree import follow_tokens, has_moved

    for key in [key for key, group in doc.spans.items() if has_moved(group)]:
        follow_tokens(doc, key)


def svg_trees(doc: "Doc", key: str) -> "list[Drawing]":
    """Draw each tree of a document as SVG."""
    from spacy_psa.pipeline.parser.tree_drawing import draw

    with not_too_deep():
        return draw(_trees(doc, key))


def text_trees(doc: "Doc", key: str) -> list[str]:
    """Draw each tree of a document as lines of text, and an empty line."""
    with not_too_deep():
        drawn = [_drawn(tree).splitlines() for tree in _trees(doc, key)]
    stripped = [[line.rstrip() for line in lines] for lines in drawn]
    return ["\n".join([*filter(None, lines), ""]) for lines in stripped]


def _trees(doc: "Doc", key: str) -> "list[Tree | str]":
    """Return the trees of a doc, without parts of speech if it has none.

    If the constituents have probabilities, these follow the labels.
    """
    from spacy_psa.pipeline.parser.constituents import bracketed, word_sentences
    from spacy_psa.pipeline.parser.extensions import parse_trees
    from spacy_psa.pipeline.parser.sentence_tree import in_order
    from spacy_psa.pipeline.written import group_scores

    if not doc.text.strip():
        return []
    group = in_order(doc, key)
    if (scores := group_scores(group)) is None:
        trees: list[Tree] = parse_trees(doc, key)
    else:
        scored = list(zip(group, scores))
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
