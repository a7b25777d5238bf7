"""Fixtures of the properties: pipelines of all components, and the counts of cases."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spacy_psa.corpora.docbin import codecs_known
from tests.helpers.properties import COUNTS
from tests.helpers.whole_pipelines import make_whole


@pytest.fixture(autouse=True)
def _cases(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Iterator[None]:
    """Note the number of cases in the report of pytest, which a long run reads."""
    yield
    record_property("cases", COUNTS[request.node.originalname])


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """Spare spaCy the search for codecs, which takes longer than the rest of reading a doc."""
    with codecs_known():
        yield


@pytest.fixture(scope="session")
def whole() -> Any:
    """A pipeline of all components."""
    return make_whole()


@pytest.fixture(scope="session")
def listening() -> Any:
    """A pipeline of all components that listen to one tok2vec."""
    return make_whole(listening=True)
