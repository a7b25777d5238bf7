"""What tests of readers and converters share: errors that name a place, a text of OntoNotes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spacy_psa.errors import InputError

# One sentence of OntoNotes, as the shared task of 2012 writes it.
ONTONOTES = """#begin document (nw/wsj/02/wsj_0203); part 000
nw/wsj/02/wsj_0203 0 0 Rome NNP (TOP(S(NP*) - - - - (GPE) (ARG0*) -
nw/wsj/02/wsj_0203 0 1 fell VBD (VP*))) - - - - * (V*) -

#end document
"""


@contextmanager
def input_error_at(path: Path, line: int, reason: str) -> Iterator[None]:
    """What is done inside is an InputError of one line, which names a file, a line and why."""
    with pytest.raises(InputError) as caught:
        yield
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert reason in message
    assert "\n" not in message
