"""The output of `annotate`: JSON lines, `.spacy`, CoNLL columns or displaCy's HTML."""

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
    """The format of the output; `auto` goes by the file name."""

    auto = "auto"
    jsonl = "jsonl"
    spacy = "spacy"
    conll = "conll"
    html = "html"


class OutputTags(str, Enum):
    """The tag scheme of the span columns."""

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
    """Writes documents one by one; `finish` is called after the last."""

    def write(self, doc: "Doc") -> None: ...

    def finish(self) -> None: ...


def resolve_format(path: Path, wanted: OutputFormat) -> OutputFormat:
    """Give the format of the output.

    Raises:
        InputError: if `wanted` is auto and the file name does not tell the format.

    Examples:
        >>> resolve_format(Path("page.html"), OutputFormat.auto).value
        'html'
    """
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
    """Open a writer to `path`; the file appears complete at the end, or not at all.

    Args:
        path: the file; "-" means stdout.
        wanted: the format.
        scheme: the tag scheme of CoNLL columns.
        tokens: whether to write the tokens to JSON lines.

    Raises:
        InputError: if `path` cannot be written.
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
    """Open `path` for bytes; the file appears complete at the end, or not at all.

    Args:
        path: the file; "-" means stdout.

    Raises:
        InputError: if `path` cannot be written.
    """
    from spacy_psa.corpora.atomic import atomic_path

    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file() and not path.is_dir():
        # A pipe or a device is written to and not replaced.
        with open(path, "wb") as stream:
            yield stream
    else:
        # Resolved, so that the file that a link points to is replaced, not the link.
        with atomic_path(path.resolve()) as temporary, open(temporary, "wb") as stream:
            yield stream


class JsonlWriter:
    """Writes one JSON object on each line.

    Its keys are `text`; `ents`, a list of `{start, end, label, text}` with character offsets, where
    `end` is excluded; `spans`, if the document has span groups, which has such a list for each
    group, each span with its `score` if the group has scores; and `tokens`, a list of
    `{start, end, tag}`, if asked for or if the document has tags. The other keys of a JSON line
    that was read come first.

    Args:
        stream: the bytes are written to it.
        tokens: whether to write the tokens, also without tags.

    Examples:
        >>> import io
        >>> from spacy.tokens import Doc
        >>> from spacy.vocab import Vocab
        >>> writer = JsonlWriter(io.BytesIO())
        >>> writer.write(Doc(Vocab(), words=["Ada", "left"], ents=["B-PER", "O"]))
        >>> json.loads(writer.stream.getvalue())["ents"]
        [{'start': 0, 'end': 3, 'label': 'PER', 'text': 'Ada'}]
    """

    def __init__(self, stream: BinaryIO, tokens: bool = False) -> None:
        self.stream = stream
        self.tokens = tokens

    def write(self, doc: "Doc") -> None:
        # Annotation that the input line contains is not from this pipeline.
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
        # Half of a surrogate pair is not valid UTF-8. JSON escapes it in the same form as Python.
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
    """Writes spaCy's binary format; it holds all documents in memory until the end.

    Args:
        stream: the bytes are written to it.

    Examples:
        >>> import io
        >>> from spacy.tokens import Doc, DocBin
        >>> from spacy.vocab import Vocab
        >>> writer = DocBinWriter(io.BytesIO())
        >>> writer.write(Doc(Vocab(), words=["Ada", "left"]))
        >>> writer.finish()
        >>> [doc.text for doc in DocBin().from_bytes(writer.stream.getvalue()).get_docs(Vocab())]
        ['Ada left ']
    """

    def __init__(self, stream: BinaryIO) -> None:
        from spacy.tokens import DocBin

        self.stream = stream
        self.docbin = DocBin(store_user_data=True)

    def write(self, doc: "Doc") -> None:
        self.docbin.add(doc)

    def finish(self) -> None:
        self.stream.write(self.docbin.to_bytes())


class ConllWriter:
    """Writes one token on each line, and an empty line after each sentence.

    The columns are word, tag, chunk and entity, with one space between. The tag and chunk columns
    are written if the first document with tokens has tags or `doc.spans["chunks"]`. Tokens that
    are only white space are left out.

    Args:
        stream: the bytes are written to it.
        scheme: the tag scheme of the chunk and entity columns.

    Examples:
        >>> import io
        >>> from spacy.tokens import Doc
        >>> from spacy.vocab import Vocab
        >>> writer = ConllWriter(io.BytesIO(), "bioes")
        >>> writer.write(Doc(Vocab(), words=["Ada", "left"], ents=["B-PER", "O"]))
        >>> print(writer.stream.getvalue().decode().strip())
        Ada S-PER
        left O
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
    """Write the tags of the tokens at `places`; of spans that overlap, the first counts."""
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
    """Writes one page with displaCy's view of each document's entities.

    A subclass may override `markup` to show another view.

    Args:
        stream: the bytes are written to it.
        title: the title of the page.

    Examples:
        >>> import io, spacy
        >>> nlp = spacy.blank("en")
        >>> doc = nlp("Ada left")
        >>> doc.set_ents([doc.char_span(0, 3, "PER")])
        >>> page = HtmlWriter(io.BytesIO())
        >>> page.write(doc)
        >>> b"<mark" in page.stream.getvalue()
        True
    """

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
        """Give the view of a document, as HTML."""
        return self.entities(doc, [{**_span(e), "label": html.escape(e.label_)} for e in doc.ents])

    def entities(self, doc: "Doc", entities: list[dict[str, Any]]) -> str:
        """Give displaCy's view of entities that do not overlap.

        Args:
            doc: the document.
            entities: in order, dicts with start and end (in characters), label (as HTML) and
                optionally params, the parameters of displaCy's template.
        """
        settings = {"lang": doc.lang_, "direction": doc.vocab.writing_system["direction"]}
        parsed = {"text": doc.text, "ents": entities, "title": None, "settings": settings}
        return self.renderer.render([parsed])

    def finish(self) -> None:
        self._put("</body>\n</html>\n")

    def _put(self, markup: str) -> None:
        self.stream.write(markup.encode("utf8", "xmlcharrefreplace"))
