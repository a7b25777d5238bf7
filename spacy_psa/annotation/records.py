"""The records of an input, and what may be wrong with them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """One document to annotate."""

    where: str
    """Its place in the file, for messages."""
    position: int
    """How much of the input is read with it: bytes, or documents of a `.spacy` file."""
    content: bytes
    """A line, or a `.spacy` file with one document."""


class MalformedLine(ValueError):
    """The content of a record is not in the format of the input; the message says why."""
