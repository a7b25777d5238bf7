"""How documents are written one by one: by their encoder, then by their writer.

The encoder gives plain data where the pipeline is, maybe in another process. The writer writes the
data in the order of the input.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from spacy.tokens import Doc

Encode = Callable[["Doc"], Any]
"""Gives what is to be written of a document, as data that can be pickled, as the function can."""


class Writer(Protocol):
    """Writes documents one by one; `finish` is called after the last."""

    encode: Encode

    def write(self, row: Any) -> None:
        """Write what `encode` gave for a document."""

    def finish(self) -> None: ...
