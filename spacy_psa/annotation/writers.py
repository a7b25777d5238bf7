"""Annotated documents as JSON lines, `.spacy` files, CoNLL columns, HTML or Label Studio's JSON.

A document is written in two steps: an encoder makes plain data of it where the pipeline is, maybe
in another process, and a writer writes the data in the order of the input.
"""

import errno
import html
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

from spacy_psa.annotation.drawing import ConfidenceView, entity_view, spans_of
from spacy_psa.annotation.rows import ANNOTATION, docbin_bytes, json_line, json_row
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.format_by_name import format_of
from spacy_psa.corpora.tag_schemes import spans_to_tags
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span

    from spacy_psa.pipeline.chain.spans import SpanLabeler
    from spacy_psa.pipeline.nested.spans import NestedSpanLabeler

Encode = Callable[["Doc"], Any]
"""Makes the data to write of a document; the function and the data can be pickled."""
Scheme = Literal["bio", "bioes"]
OutputFormat = Literal["auto", "jsonl", "spacy", "conll", "html", "label-studio", "parquet"]
"""The format of the output; `auto` goes by the file name."""

SUFFIXES: dict[str, OutputFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".spacy": "spacy",
    ".conll": "conll",
    ".bio": "conll",
    ".bioes": "conll",
    ".iob": "conll",
    ".html": "html",
    ".htm": "html",
    ".parquet": "parquet",
}
CHOICES = "--format jsonl, spacy, conll, html or label-studio"


class SpanKeys(NamedTuple):
    """The span groups in which the components of a pipeline write."""

    trees: str = "constituents"
    chunks: str = "chunks"
    nested: str = "sc"

    @classmethod
    def of(cls, nlp: "Language") -> "SpanKeys":
        """Read them from the first `constituency_parser`, `crf_chunker` and `crf_spans`."""
        from spacy_psa.pipeline.chain.spans import SpanLabeler
        from spacy_psa.pipeline.nested.spans import NestedSpanLabeler
        from spacy_psa.pipeline.parser.parser import ConstituencyParser

        keys: dict[str, str] = {}
        for _, pipe in nlp.pipeline:
            if isinstance(pipe, ConstituencyParser):
                keys.setdefault("trees", pipe.spans_key)
            elif isinstance(pipe, NestedSpanLabeler):
                keys.setdefault("nested", pipe.spans_key)
            elif isinstance(pipe, SpanLabeler) and pipe.store.spans_key:
                keys.setdefault("chunks", pipe.store.spans_key)
        return cls(**keys)


USUAL_KEYS = SpanKeys()


class Writer:
    """Writes documents one by one; `finish` is called after the last."""

    replaced: frozenset[str] = frozenset()
    """The keys of the input that the annotation has replaced."""

    def __init__(self, stream: BinaryIO, encode: Encode) -> None:
        self.stream = stream
        self.encode = encode

    def write(self, row: Any) -> None:
        """Write the data of a document."""
        self.stream.write(row)

    def finish(self) -> None:
        """Write the end of the file."""


def resolve_format(path: Path, wanted: OutputFormat) -> OutputFormat:
    """Find the format of the output."""
    suffix = ".jsonl" if str(path) == "-" else path.suffix
    form = format_of(path, wanted, SUFFIXES, CHOICES, suffix)
    if form == "parquet":
        raise InputError(f"{path}: Parquet is only written with --engine ray; add this option")
    return form


def open_writer(
    path: Path,
    form: OutputFormat,
    scheme: Scheme = "bio",
    tokens: bool = False,
    text_key: str = "text",
    keys: SpanKeys = USUAL_KEYS,
    encode: Encode | None = None,
) -> AbstractContextManager[Writer]:
    """Open a writer to `path`; the file appears complete at the end, or not at all.

    "-" means stdout. `keys` are the span groups that CoNLL columns, HTML and Label Studio show.
    JSON lines have the tokens if `tokens` is set, and the encoder `encode` in place of the usual
    one.
    """
    if form == "jsonl":
        usual = partial(json_bytes, tokens=tokens, text_key=text_key)
        return opened(path, JsonlWriter, encode or usual)
    if form == "spacy":
        return opened(path, DocBinWriter, docbin_bytes)
    if form == "conll":
        return opened(path, ConllWriter, partial(conll_columns, scheme=scheme, keys=keys))
    if form == "label-studio":
        return opened(path, TaskWriter, partial(task_bytes, text_key=text_key, keys=keys))
    view = partial(entity_view, trees=keys.trees, nested=keys.nested)
    return opened(path, HtmlWriter, view)


@contextmanager
def opened(
    path: Path, make: Callable[[BinaryIO, Encode], Writer], encode: Encode
) -> Iterator[Writer]:
    """Open a writer that `make` makes for a stream and an encoder, and finish it at the end."""
    with open_output(path) as stream:
        writer = make(stream, encode)
        yield writer
        writer.finish()


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open a file for bytes, which appears complete at the end or not at all. "-" means stdout."""
    if str(path) == "-":
        with _written("stdout"):
            try:
                yield sys.stdout.buffer
                sys.stdout.buffer.flush()
            except OSError:
                _forget_stdout()
                raise
    elif path.exists() and not path.is_file() and not path.is_dir():
        # A pipe or a device is written to and not replaced.
        with _written(str(path)), open(path, "wb") as stream:
            yield stream
    else:
        # Resolved, so that the file that a link points to is replaced, not the link.
        with atomic_path(path.resolve()) as temporary, open(temporary, "wb") as stream:
            yield stream


@contextmanager
def _written(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # readers inside the block raise InputError
        if error.errno == errno.EPIPE:
            raise  # the reader has enough, which is not an error; click ends the command
        reason = error.strerror or error
        raise InputError(f"{name}: cannot be written ({reason}); check the path") from error


def _forget_stdout() -> None:
    """Drop the buffer of stdout, or Python would fail to write it once more when it ends."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


class JsonlWriter(Writer):
    """Writes a JSON object on each line."""

    def write(self, row: tuple[bytes, list[str]]) -> None:
        line, replaced = row
        self.stream.write(line)
        self.replaced = self.replaced.union(replaced)


def json_bytes(doc: "Doc", tokens: bool, text_key: str) -> tuple[bytes, list[str]]:
    """Encode a document for `JsonlWriter`: its line, and the keys of the input that it replaces."""
    row, replaced = json_row(doc, tokens, text_key)
    return json_line(row), replaced


class TaskWriter(JsonlWriter):
    """Writes tasks of Label Studio with predictions, as one JSON list."""

    between = b"[\n"

    def write(self, row: tuple[bytes, list[str]]) -> None:
        self.stream.write(self.between)
        self.between = b",\n"
        super().write((row[0].rstrip(b"\n"), row[1]))

    def finish(self) -> None:
        self.stream.write(b"\n]\n" if self.between == b",\n" else b"[]\n")


def task_bytes(doc: "Doc", text_key: str, keys: SpanKeys) -> tuple[bytes, list[str]]:
    """Encode a document for `TaskWriter`, as `json_bytes` does.

    Each region has its probability as score, if the pipeline writes some. The score of the task is
    the least of them, so that Label Studio can show the least certain tasks first. Regions are
    entities or nested spans; if the document has neither, its chunks.
    """
    from spacy_psa.corpora.label_studio import regions
    from spacy_psa.pipeline.chain.extensions import span_confidence

    spans = [*doc.ents, *spans_of(doc, keys.nested)] or list(spans_of(doc, keys.chunks))
    scores = [span_confidence(span) for span in spans]
    known = [score for score in scores if score is not None]
    places = ((span.start_char, span.end_char, span.label_) for span in spans)
    shown = [(*place, score) for place, score in zip(places, scores)]
    prediction: dict[str, Any] = {"score": min(known)} if known else {}
    row, replaced = json_row(doc, False, text_key)
    data = {name: value for name, value in row.items() if name not in ANNOTATION}
    prediction["result"] = regions(doc.text, shown)
    return json_line({"data": data, "predictions": [prediction]}), replaced


class DocBinWriter(Writer):
    """Writes spaCy's binary format; it holds all documents in memory until the end."""

    def __init__(self, stream: BinaryIO, encode: Encode) -> None:
        from spacy.tokens import DocBin

        super().__init__(stream, encode)
        self.docbin = DocBin(store_user_data=True)

    def write(self, row: bytes) -> None:
        from spacy.tokens import DocBin

        self.docbin.merge(DocBin(store_user_data=True).from_bytes(row))

    def finish(self) -> None:
        self.stream.write(self.docbin.to_bytes())


class ConllWriter(Writer):
    """Writes one token on each line, and an empty line after each sentence.

    The columns are word, tag, tree, chunk and entity, with one space between. The columns of tags,
    trees and chunks are written if the first document with tokens has tags, or the span group of
    trees or chunks. The tree column is that of CoNLL-2012: joined, it is the tree in brackets with
    * for each token. Tokens of white space are left out. White space within words, tags and labels
    becomes "_", as do null characters, which the readers of such files refuse.
    """

    names: list[str] | None = None

    def write(self, row: list[dict[str, list[str]]]) -> None:
        for columns in row:
            if self.names is None:
                self.names = list(columns)
            length = len(columns["word"])
            missing = {"tag": ["_"] * length, "tree": ["*"] * length, "chunk": ["O"] * length}
            chosen = [(missing | columns)[name] for name in self.names]
            lines = [" ".join(cells) for cells in zip(*chosen, strict=True)]
            self.stream.write(("\n".join(lines) + "\n\n").encode("utf8"))


def conll_columns(doc: "Doc", scheme: Scheme, keys: SpanKeys) -> list[dict[str, list[str]]]:
    """Encode a document for `ConllWriter`: the columns of each sentence, by their names.

    InputError if its only annotation is nested spans, which have no column.
    """
    if not len(doc):
        return []
    from spacy_psa.pipeline.written import spans_now

    tagged = doc.has_annotation("TAG")
    chunks = spans_now(doc, keys.chunks) if keys.chunks in doc.spans else None
    others = tagged or chunks is not None or keys.trees in doc.spans
    if keys.nested in doc.spans and not (others or doc.has_annotation("ENT_IOB")):
        raise InputError("CoNLL has no column for nested spans: write .jsonl, .spacy or .html")
    rows = []
    for sentence in doc.sents if doc.has_annotation("SENT_START") else [doc[:]]:
        tokens = [token for token in sentence if not token.is_space]
        if not tokens:
            continue
        places = [token.i for token in tokens]
        columns = {"word": [token.text for token in tokens]}
        if tagged:
            columns["tag"] = [token.tag_ for token in tokens]
        if keys.trees in doc.spans:
            columns["tree"] = _tree_cells(sentence, keys.trees)
        if chunks is not None:
            columns["chunk"] = _tags(chunks, places, scheme)
        columns["entity"] = _tags(doc.ents, places, scheme)
        rows.append({name: [_cell(text) for text in cells] for name, cells in columns.items()})
    return rows


def _tree_cells(sentence: "Span", key: str) -> list[str]:
    """Cut the tree of a sentence in brackets into a cell for each token, as CoNLL-2012 does."""
    from spacy_psa.pipeline.parser.extensions import parse_string

    leaves = re.sub(r"\([^\s()]+ [^\s()]+\)", "\0", parse_string(sentence, key))
    cells = re.findall(r"[^\0]*\0\)*", leaves.replace(" ", ""))
    return [cell.replace("\0", "*") for cell in cells]


def _cell(text: str) -> str:
    return "_".join(text.replace("\0", " ").split()) or "_"


def _tags(spans: "Iterable[Span]", places: list[int], scheme: Scheme) -> list[str]:
    """Write the tags of the tokens at `places`; of spans that overlap, the first counts."""
    row = {place: i for i, place in enumerate(places)}
    taken: set[int] = set()
    nodes = []
    for span in spans:
        rows = [row[i] for i in range(span.start, span.end) if i in row]
        if rows and taken.isdisjoint(rows):
            taken.update(rows)
            nodes.append((rows[0], rows[-1] + 1, span.label_))
    return spans_to_tags(nodes, len(places), "iob2" if scheme == "bio" else "bioes")


class HtmlWriter(Writer):
    """Writes one page with a view of each document, which the encoder returns as HTML."""

    def __init__(self, stream: BinaryIO, encode: Encode, title: str = "Entities") -> None:
        super().__init__(stream, encode)
        self._put(
            '<!DOCTYPE html>\n<html>\n<head><meta charset="utf-8">'
            f"<title>{html.escape(title)}</title></head>\n"
            '<body style="font-family: sans-serif; margin: 3em auto; max-width: 60em">\n'
        )

    def write(self, row: str) -> None:
        self._put(f"<figure>\n{row.strip()}\n</figure>\n")

    def finish(self) -> None:
        self._put("</body>\n</html>\n")

    def _put(self, markup: str) -> None:
        self.stream.write(markup.encode("utf8", "xmlcharrefreplace"))


def open_confidence_page(
    path: Path, pipe: "SpanLabeler | NestedSpanLabeler"
) -> AbstractContextManager[Writer]:
    """Open a page of the spans of a component with their probabilities, as `open_writer` does."""
    page = partial(HtmlWriter, title=f"Confidence of {pipe.name}")
    return opened(path, page, ConfidenceView(pipe))
