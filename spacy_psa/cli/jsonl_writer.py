"""Annotated documents as JSON lines."""

from functools import partial
from typing import TYPE_CHECKING, BinaryIO

import typer

from spacy_psa.annotation.rows import json_line, json_row
from spacy_psa.annotation.writer import Encode

if TYPE_CHECKING:
    from spacy.tokens import Doc


class JsonlWriter:
    """Writes one JSON object on each line.

    Its keys are `text` and those that `spacy_psa.annotation.rows.annotation` gives. The other keys
    of a JSON line that was read come first. If they have one of these names, as an earlier
    annotation has, they are replaced, and a line on stderr says so.

    Args:
        stream: the bytes are written to it.
        tokens: whether to write the tokens, also without tags.
        text_key: the key of the text.

    Examples:
        >>> import io, json
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
        self.encode: Encode = partial(_encode, tokens=tokens, text_key=text_key)
        self.replaced: set[str] = set()

    def write(self, row: tuple[bytes, list[str]]) -> None:
        line, replaced = row
        self.stream.write(line)
        self.replaced.update(replaced)

    def finish(self) -> None:
        if self.replaced:
            names = ", ".join(sorted(self.replaced))
            typer.echo(f"warning: the annotation replaces keys of the input: {names}", err=True)


def _encode(doc: "Doc", tokens: bool, text_key: str) -> tuple[bytes, list[str]]:
    row, replaced = json_row(doc, tokens, text_key)
    return json_line(row), replaced
