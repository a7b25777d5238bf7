"""A small corpus to train on."""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from tests.helpers.pipelines import MARKED, make_examples


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "train.spacy"
    nlp = spacy.blank("en")
    DocBin(docs=[eg.reference for eg in make_examples(nlp, MARKED * 3)]).to_disk(path)
    return path
