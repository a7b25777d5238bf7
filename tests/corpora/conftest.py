"""Files to read, and a vocabulary for what is read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy


@pytest.fixture
def vocab() -> Any:
    return spacy.blank("en").vocab


@pytest.fixture
def write(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Path]:
    """Writes a file; its name is the test module's FILE where none is given."""
    usual = getattr(request.module, "FILE", "in.txt")

    def _write(text: str | bytes, name: str = usual) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return _write
