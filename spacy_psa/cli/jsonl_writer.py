"""Annotated documents as JSON lines."""

import json
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from spacy_psa.cli.writer import Encode

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, SpanGroup

ANNOTATION = ("ents", "spans", "tokens")
"""The keys of a JSON line that have the annotation."""


class JsonlWriter:
    """Writes one JSON object on each line.

    Its keys are `text`; `ents`, a list of `{start, end, label, text}` with character offsets, where
    `end` is excluded; `spans`, if the document has span groups, which has such a list for each
    group, each span with its `score` if the group has scores; and `tokens`, a list of
    `{start, end, tag}`, if asked for or if the document has tags. The other keys of a JSON line
    that was read come first. If they have one of these names, as an earlier annotation has, they
    are replaced, and a line on stderr says so.

    Args:
        stream: the bytes are written to it.
        tokens: whether to write the tokens, also without tags.
        text_key: the key of the text.

    Examples:
        >>> import io
        >>> from spacy.tokens import Doc
        >>> from spacy.vocab import Vocab
        >>> writer = JsonlWriter(io.BytesIO())
        >>> doc = Doc(Vocab(), words=["Ada", "left"], ents=["B-PER", "O"])
        >>> writer.write(writer.encode(doc))
        >>> json.loads(writer.stream.getvalue())["ents"]
        [{'start': 0, 'end': 3, 'label': 'PER', 'text': 'Ada'}]
    """

    def __init__(self, stream: BinaryIO, tokens: bool = False, text_key: str = "text") -> None:
        self.stream = stream
        self.encode: Encode = partial(json_line, tokens=tokens, text_key=text_key)
        self.replaced: set[str] = set()

    def write(self, row: tuple[bytes, list[str]]) -> None:
        line, replaced = row
        self.stream.write(line)
        self.replaced.update(replaced)

    def finish(self) -> None:
        if self.replaced:
            names = ", ".join(sorted(self.replaced))
            typer.echo(f"warning: the annotation replaces keys of the input: {names}", err=True)


def json_line(doc: "Doc", tokens: bool, text_key: str) -> tuple[bytes, list[str]]:
    """Encode a document for `JsonlWriter`.

    Returns:
        The line, and the keys of the input that it replaces.
    """
    meta = doc.user_data.get("meta", {})
    record: dict[str, Any] = {text_key: doc.text, "ents": [_span(ent) for ent in doc.ents]}
    spans = {key: _group(group) for key, group in doc.spans.items()}
    if spans:
        record["spans"] = spans
    tagged = len(doc) > 0 and doc.has_annotation("TAG")
    if tokens or tagged:
        record["tokens"] = [
            {"start": token.idx, "end": token.idx + len(token)}
            | ({"tag": token.tag_} if tagged else {})
            for token in doc
        ]
    replaced = [key for key in meta if key in (text_key, *ANNOTATION)]
    others = {key: value for key, value in meta.items() if key not in replaced}
    line = json.dumps({**others, **record}, ensure_ascii=False) + "\n"
    # Half of a surrogate pair is not valid UTF-8. JSON escapes it in the same form as Python.
    return line.encode("utf8", "backslashreplace"), replaced


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
