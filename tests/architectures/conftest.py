"""Docs that several embedders are tested on."""

import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from tests.helpers.words import docs_of


@pytest.fixture
def docs() -> list[Doc]:
    """Three of a few words, with tags, and one without words."""
    found = docs_of(Vocab(), "a rose is a rose", "Every Rose", "is a thorn", "")
    for doc in found:
        for token in doc:
            token.tag_ = token.text[-1]
    return found
