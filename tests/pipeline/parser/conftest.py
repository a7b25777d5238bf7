"""A trained parser."""

from typing import Any

import pytest

from tests.helpers.parsers import make_parser, train_parser


@pytest.fixture(scope="session")
def parser_bytes() -> bytes:
    """A pipeline that knows the trees of `BRACKETS`, serialised."""
    nlp = make_parser(loss="log_likelihood", confidence=True)
    train_parser(nlp, 60)
    return nlp.to_bytes()


@pytest.fixture
def parsing(parser_bytes: bytes) -> Any:
    """A pipeline that knows the trees of `BRACKETS`, the test's own."""
    return make_parser(loss="log_likelihood", confidence=True).from_bytes(parser_bytes)
