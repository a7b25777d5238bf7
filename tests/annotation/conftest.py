"""A small pipeline, and texts for it."""

import pytest
import spacy
from spacy.language import Language


def names_pipeline() -> Language:
    """A pipeline that knows two names, as entities and as a span group with scores."""
    nlp = spacy.blank("en")
    patterns = [{"label": "LOC", "pattern": "London"}, {"label": "PER", "pattern": "Ada Lovelace"}]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    return nlp


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small pipeline."""
    folder = tmp_path_factory.mktemp("model") / "names"
    names_pipeline().to_disk(folder)
    return str(folder)
