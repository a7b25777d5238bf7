"""The limits of a server, and who may ask it."""

from dataclasses import dataclass

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Settings:
    """The limits of a server, and who may ask it.

    Attributes:
        token: what each request must show; None for no token.
        hosts: the names under which the server may be asked; None for any.
        max_bytes: number of bytes of a request.
        max_texts: number of texts of a request.
        max_chars: number of characters of a text.
        max_seconds: seconds for reading a request, and again for answering it.
        batch: number of texts that go through the model together.
        waiting: number of texts that may wait.

    Examples:
        >>> Settings().max_texts
        1000
    """

    token: str | None = None
    hosts: tuple[str, ...] | None = LOOPBACK
    max_bytes: int = 10_000_000
    max_texts: int = 1000
    max_chars: int = 100_000
    max_seconds: float = 60.0
    batch: int = 64
    waiting: int = 10_000
