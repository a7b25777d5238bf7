"""Writing what `annotate` annotated: JSON lines, `.spacy`, CoNLL columns or displaCy HTML."""

import html
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, SpanGroup


class OutputFormat(str, Enum):
    """What is written; auto goes by the file's name."""

    auto = "auto"
    jsonl = "jsonl"
    spacy = "spacy"
    conll = "conll"
    html = "html"


class OutputTags(str, Enum):
    """Tags of the span columns."""

    bio = "bio"
    bioes = "bioes"


SUFFIXES = {
    ".jsonl": OutputFormat.jsonl,
    ".ndjson": OutputFormat.jsonl,
    ".spacy": OutputFormat.spacy,
    ".conll": OutputFormat.conll,
    ".bio": OutputFormat.conll,
    ".bioes": OutputFormat.conll,
    ".iob": OutputFormat.conll,
    ".html": OutputFormat.html,
    ".htm": OutputFormat.html,
}


class Writer(Protocol):
    """Writes documents one by one; `finish` after the last."""

    def write(self, doc: "Doc") -> None: ...

    def finish(self) -> None: ...


def resolve_format(path: Path, wanted: OutputFormat) -> OutputFormat:
    """Raises InputError where `wanted` is auto and the name says nothing."""
    if wanted is not OutputFormat.auto:
        return wanted
    if str(path) == "-":
        return OutputFormat.jsonl
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path}: cannot tell the format from the name; "
            "give --format jsonl, spacy, conll or html"
        )
    return SUFFIXES[path.suffix.lower()]


@contextmanager
def open_writer(
    path: Path, wanted: OutputFormat, scheme: OutputTags, tokens: bool
) -> Iterator[Writer]:
    """A writer to `path`, "-" for stdout; a file appears whole, at the end, or not at all.

    Raises:
        InputError: `path` cannot be written.
    """
    form = resolve_format(path, wanted)
    with open_output(path) as stream:
        writer: Writer
        if form is OutputFormat.jsonl:
            writer = JsonlWriter(stream, tokens)
        elif form is OutputFormat.spacy:
            writer = DocBinWriter(stream)
        elif form is OutputFormat.conll:
            writer = ConllWriter(stream, scheme.value)
        else:
            writer = HtmlWriter(stream)
        yield writer
        writer.finish()


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """The bytes of `path`, "-" for stdout; a file appears whole, at the end, or not at all.

    Raises:
        InputError: `path` cannot be written.
    """
    from spacy_psa.corpora.atomic import atomic_path

    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file() and not path.is_dir():
        # A pipe or a device must be written to, not replaced.
        with open(path, "wb") as stream:
            yield stream
    else:
        # Resolved, so that a link goes on pointing to the file that it named.
        with atomic_path(path.resolve()) as temporary, open(temporary, "wb") as stream:
            yield stream


class JsonlWriter:
    """One JSON object a line.

    `text`; `ents`, a list of `{start, end, label, text}` with character offsets,
    `end` excluded; `spans`, where the document has span groups, the same by the
    group's name, each with its `score` where the group has scores; `tokens`, a
    list of `{start, end, tag}`, where asked for or where tags are set. The other
    keys of a JSON line that was read are written back in front.
    """

    def __init__(self, stream: BinaryIO, tokens: bool = False) -> None:
        self.stream = stream
        self.tokens = tokens

    def write(self, doc: "Doc") -> None:
        # An annotation that the line came with is not this one's.
        meta = doc.user_data.get("meta", {})
        record: dict[str, Any] = {k: v for k, v in meta.items() if k not in ("spans", "tokens")}
        record["text"] = doc.text
        record["ents"] = [_span(ent) for ent in doc.ents]
        spans = {key: _group(group) for key, group in doc.spans.items()}
        if spans:
            record["spans"] = spans
        tagged = doc.has_annotation("TAG")
        if self.tokens or tagged:
            record["tokens"] = [
                {"start": token.idx, "end": token.idx + len(token)}
                | ({"tag": token.tag_} if tagged else {})
                for token in doc
            ]
        line = json.dumps(record, ensure_ascii=False) + "\n"
        # Half of a surrogate pair is no UTF-8, but JSON has an escape for it: Python's.
        self.stream.write(line.encode("utf8", "backslashreplace"))

    def finish(self) -> None:
        pass


def _span(span: "Span") -> dict[str, Any]:
    return {
        "start": span.start_char,
        "end": span.end_char,
        "label": span.label_,
        "text": span.text,
    }


def _group(group: "SpanGroup") -> list[dict[str, Any]]:
    spans = [_span(span) for span in group]
    scores = group.attrs.get("scores")
    if scores is not None and len(scores) == len(spans):
        for span, score in zip(spans, scores, strict=True):
            span["score"] = float(score)
    return spans


class DocBinWriter:
    """spaCy's binary format; holds all documents until the end."""

    def __init__(self, stream: BinaryIO) -> None:
        from spacy.tokens import DocBin

        self.stream = stream
        self.docbin = DocBin(store_user_data=True)

    def write(self, doc: "Doc") -> None:
        self.docbin.add(doc)

    def finish(self) -> None:
        self.stream.write(self.docbin.to_bytes())


class ConllWriter:
    """A token a line: word, tag, chunk, entity, with one space between; an empty line
    after each sentence.

    The tag and chunk columns are there if the first document that has tokens has
    tags or `doc.spans["chunks"]`. Tokens of white space alone are left out.
    """

    def __init__(self, stream: BinaryIO, scheme: Literal["bio", "bioes"] = "bio") -> None:
        self.stream = stream
        self.scheme = scheme
        self.columns: tuple[bool, bool] | None = None

    def write(self, doc: "Doc") -> None:
        if not len(doc):
            return
        if self.columns is None:
            self.columns = doc.has_annotation("TAG"), "chunks" in doc.spans
        tagged, chunked = self.columns
        sentences = doc.sents if doc.has_annotation("SENT_START") else [doc[:]]
        lines: list[str] = []
        for sentence in sentences:
            tokens = [token for token in sentence if not token.is_space]
            if not tokens:
                continue
            places = [token.i for token in tokens]
            columns = [["_".join(token.text.split()) for token in tokens]]
            if tagged:
                columns.append([token.tag_ or "_" for token in tokens])
            if chunked:
                columns.append(_tags(doc.spans.get("chunks", []), places, self.scheme))
            columns.append(_tags(doc.ents, places, self.scheme))
            lines += [" ".join(row) for row in zip(*columns, strict=True)]
            lines.append("")
        if lines:
            self.stream.write(("\n".join(lines) + "\n").encode("utf8"))

    def finish(self) -> None:
        pass


def _tags(spans: "Iterable[Span]", places: list[int], scheme: Literal["bio", "bioes"]) -> list[str]:
    """Tags for the tokens at `places`, a sentence; of spans that overlap, the first."""
    from spacy_psa.corpora.tag_schemes import spans_to_tags

    row = {place: i for i, place in enumerate(places)}
    taken: set[int] = set()
    found = []
    for span in spans:
        rows = [row[i] for i in range(span.start, span.end) if i in row]
        if rows and taken.isdisjoint(rows):
            taken.update(rows)
            found.append((rows[0], rows[-1] + 1, span.label_))
    return spans_to_tags(found, len(places), "iob2" if scheme == "bio" else "bioes")


class HtmlWriter:
    """One page with displaCy's view of each document's entities; a subclass may show another."""

    def __init__(self, stream: BinaryIO, title: str = "Entities") -> None:
        from spacy.displacy.render import EntityRenderer

        self.stream = stream
        self.renderer = EntityRenderer()
        self._put(
            '<!DOCTYPE html>\n<html>\n<head><meta charset="utf-8">'
            f"<title>{html.escape(title)}</title></head>\n"
            '<body style="font-family: sans-serif; margin: 3em auto; max-width: 60em">\n'
        )

    def write(self, doc: "Doc") -> None:
        self._put(f"<figure>\n{self.markup(doc).strip()}\n</figure>\n")

    def markup(self, doc: "Doc") -> str:
        """The view of a document, as HTML."""
        return self.entities(doc, [{**_span(e), "label": html.escape(e.label_)} for e in doc.ents])

    def entities(self, doc: "Doc", entities: list[dict[str, Any]]) -> str:
        """displaCy's view of entities that do not overlap, in order: dicts of start, end (in
        characters), label (as HTML) and, it may be, params of displaCy's template."""
        settings = {"lang": doc.lang_, "direction": doc.vocab.writing_system["direction"]}
        parsed = {"text": doc.text, "ents": entities, "title": None, "settings": settings}
        return self.renderer.render([parsed])

    def finish(self) -> None:
        self._put("</body>\n</html>\n")

    def _put(self, markup: str) -> None:
        self.stream.write(markup.encode("utf8", "xmlcharrefreplace"))
