"""What tests of readers and converters share: errors that name a place, real corpora."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spacy_psa.errors import InputError


@contextmanager
def input_error_at(path: Path, line: int, reason: str) -> Iterator[None]:
    """What is done inside is an InputError of one line, which names a file, a line and why."""
    with pytest.raises(InputError) as caught:
        yield
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert reason in message
    assert "\n" not in message
