"""A recognizer that is right, but not sure."""

from collections.abc import Callable
from typing import Any

import pytest
from thinc.api import Adam

from tests.helpers.pipelines import make_nlp, train


@pytest.fixture(scope="session")
def unsure_bytes() -> bytes:
    nlp = make_nlp()
    train(nlp, 12, Adam(0.02))
    return nlp.to_bytes()


@pytest.fixture
def unsure(unsure_bytes: bytes) -> Callable[..., Any]:
    """Makes that pipeline, with settings of the component."""
    return lambda **settings: make_nlp(**settings).from_bytes(unsure_bytes)
