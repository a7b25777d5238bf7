"""Constituency trees as files: brackets, JSON lines, a drawing or `.spacy`."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from spacy_psa.annotation.rows import docbin_bytes, json_line, json_row
from spacy_psa.annotation.writer import Encode, Writer
from spacy_psa.cli.docbin_writer import DocBinWriter
from spacy_psa.cli.jsonl_writer import JsonlWriter
from spacy_psa.cli.output import open_output
from spacy_psa.cli.tree_pictures import SvgWriter, check_drawing, svg_trees
from spacy_psa.corpora.format_by_name import format_of
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.tokens import Doc


class TreeFormat(str, Enum):
    """The format of trees; `auto` goes by the file name."""

    auto = "auto"
    brackets = "brackets"
    indented = "indented"
    jsonl = "jsonl"
    svg = "svg"
    spacy = "spacy"


SUFFIXES = {
    "": TreeFormat.brackets,
    ".txt": TreeFormat.brackets,
    ".brackets": TreeFormat.brackets,
    ".parse": TreeFormat.brackets,
    ".mrg": TreeFormat.indented,
    ".jsonl": TreeFormat.jsonl,
    ".svg": TreeFormat.svg,
    ".spacy": TreeFormat.spacy,
}


def resolve_tree_format(path: Path, wanted: TreeFormat) -> TreeFormat:
    """Give the format of the output.

    Raises:
        InputError: if `wanted` is auto and the file name does not tell the format, or if the output
            is a drawing and svgling is not installed.

    Examples:
        >>> resolve_tree_format(Path("trees.mrg"), TreeFormat.auto).value
        'indented'
    """
    choices = "--format brackets, indented, jsonl, svg or spacy"
    form = format_of(path, wanted, SUFFIXES, choices)
    if form is TreeFormat.svg:
        check_drawing(path, "give another --format")
    return form


def gap_of(form: TreeFormat, gaps: bool) -> list[str] | None:
    """Give what `BracketWriter` writes for a document without trees; None for other writers.

    Args:
        form: the format, not auto.
        gaps: see `open_tree_writer`.
    """
    return ["(())"] if gaps and form in (TreeFormat.brackets, TreeFormat.indented) else None


@contextmanager
def open_tree_writer(
    path: Path, wanted: TreeFormat, *, key: str, gaps: bool, text_key: str = "text"
) -> Iterator[Writer]:
    """Open a writer of trees to `path`; the file appears complete at the end, or not at all.

    Args:
        path: the file; "-" means stdout.
        wanted: the format.
        key: the span group with the constituents.
        gaps: whether a sentence without words is "(())" in brackets, so that lines stay aligned.
        text_key: the key of the text in JSON lines.

    Raises:
        InputError: if `path` cannot be written, and as `resolve_tree_format`.
    """
    form = resolve_tree_format(path, wanted)
    with open_output(path) as stream:
        writer: Writer
        if form is TreeFormat.svg:
            writer = SvgWriter(stream)
            writer.encode = partial(svg_trees, key=key)
        elif form is TreeFormat.spacy:
            writer = DocBinWriter(stream)
            writer.encode = _docbin_with_trees
        elif form is TreeFormat.jsonl:
            writer = JsonlWriter(stream, text_key=text_key)
            writer.encode = partial(_json_with_trees, key=key, text_key=text_key)
        else:
            indented = form is TreeFormat.indented
            writer = BracketWriter(stream, partial(brackets, key=key, indented=indented, gaps=gaps))
        yield writer
        writer.finish()


class BracketWriter:
    """Writes trees in brackets.

    Args:
        stream: the bytes are written to it.
        encode: gives the trees of a document in brackets.

    Examples:
        >>> import io
        >>> writer = BracketWriter(io.BytesIO(), lambda doc: ["(S (UH Yes))"])
        >>> writer.write(writer.encode(None))
        >>> writer.stream.getvalue()
        b'(S (UH Yes))\\n'
    """

    def __init__(self, stream: BinaryIO, encode: Encode) -> None:
        self.stream = stream
        self.encode = encode

    def write(self, row: list[str]) -> None:
        for tree in row:
            self.stream.write(f"{tree}\n".encode("utf8", "backslashreplace"))

    def finish(self) -> None:
        pass


def brackets(doc: "Doc", key: str, indented: bool = False, gaps: bool = False) -> list[str]:
    """Write the tree of each sentence of a document in brackets.

    Args:
        doc: the document.
        key: the span group with the constituents.
        indented: whether to indent each tree over several lines.
        gaps: see `open_tree_writer`.

    Examples:
        >>> from spacy.tokens import Doc, Span
        >>> from spacy.vocab import Vocab
        >>> doc = Doc(Vocab(), words=["I", "came"], tags=["PRP", "VBD"])
        >>> doc.spans["constituents"] = [Span(doc, 0, 2, "S")]
        >>> brackets(doc, "constituents")
        ['(S (PRP I) (VBD came))']
    """
    from spacy_psa.pipeline.parser.extensions import parse_string, parse_trees
    from spacy_psa.sentences import sentence_bounds

    if not doc.text.strip():
        return ["(())"] if gaps else []
    sentences = [doc[start:end] for start, end in sentence_bounds(doc)]
    filled = [sentence for sentence in sentences if sentence.text.strip()]
    try:
        trees = iter(
            [str(tree) for tree in parse_trees(doc, key)]
            if indented
            else [parse_string(sentence, key) for sentence in filled]
        )
    except RecursionError as error:
        raise InputError("a tree is too deep to indent; take --format brackets") from error
    if not gaps:
        return list(trees)
    return [next(trees) if sentence.text.strip() else "(())" for sentence in sentences]


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
