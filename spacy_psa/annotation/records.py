"""The records of an input, and what may be wrong with them."""

from collections.abc import Iterable, Iterator
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
    goes_on: bool = False
    """Whether the next record belongs to the same document; see `same_document`."""


def record_batches(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    """Cut a stream of records into batches, between documents if possible.

    Args:
        records: the records.
        size: number of records in a batch. A batch grows up to ten times as long, so that the
            records of a document stay together.

    Examples:
        >>> records = [Record("a", i, b"", goes_on=i in (1, 2)) for i in range(5)]
        >>> [len(batch) for batch in record_batches(records, size=2)]
        [4, 1]
    """
    batch: list[Record] = []
    for record in records:
        batch.append(record)
        if len(batch) >= size and (len(batch) >= 10 * size or not record.goes_on):
            yield batch
            batch = []
    if batch:
        yield batch


class MalformedLine(ValueError):
    """The content of a record is not in the format of the input; the message says why."""
