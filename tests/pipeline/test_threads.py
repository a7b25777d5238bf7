"""Threads that share a pipeline give what one thread gives."""

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from spacy.tokens import Doc

from spacy_psa.architectures.distinct_words import caches
from tests.helpers.parsers import random_parser
from tests.helpers.patience import PATIENCE
from tests.helpers.pipelines import entities, random_nlp, scored, small_encoder, spans_of

THREADS = 8
DRAW = random.Random(1)
WORDS = ["".join(DRAW.choices("abcdefg", k=DRAW.randint(1, 8))) for _ in range(300)]
TEXTS = [" ".join(DRAW.choices(WORDS, k=DRAW.randint(2, 25))) for _ in range(24)]


def recognizer(encoder: str) -> Any:
    nlp = random_nlp({"confidence": True}, encoder=small_encoder(encoder))
    for cache in caches(nlp.get_pipe("ner").model):
        cache.size = 40  # threads push out each other's words
    return nlp


def names(doc: Doc) -> Any:
    return entities(doc), scored(doc)


def constituents(doc: Doc) -> Any:
    return spans_of(doc.spans["constituents"])


PIPELINES: dict[str, tuple[Callable[[], Any], Callable[[Doc], Any]]] = {
    "bilstm": (lambda: recognizer("BiLSTM"), names),
    "psa": (lambda: recognizer("PSABiLSTM"), names),
    "parser": (random_parser, constituents),
}


@pytest.fixture
def eager_switches():
    """Python changes threads as often as it can."""
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(former)


@pytest.mark.usefixtures("eager_switches")
@pytest.mark.parametrize("way", ["call", "pipe"])
@pytest.mark.parametrize("name", PIPELINES)
def test_threads_give_the_results_of_one(name, way):
    make, read = PIPELINES[name]
    nlp = make()
    expected = {text: read(nlp(text)) for text in TEXTS}
    assert len(set(map(str, expected.values()))) > THREADS
    together = Barrier(THREADS, timeout=PATIENCE)

    def annotate(seed: int) -> dict[str, Any]:
        texts = random.Random(seed).sample(TEXTS, len(TEXTS))
        together.wait()
        docs = map(nlp, texts) if way == "call" else nlp.pipe(texts, batch_size=7)
        return {doc.text: read(doc) for doc in docs}

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(annotate, range(THREADS)))
    for results in found:
        assert results.keys() == expected.keys()
        for text, result in results.items():
            assert_close(result, expected[text])


def assert_close(result: Any, expected: Any) -> None:
    """Probabilities may differ in their last digits with the other texts of a batch."""
    if isinstance(result, tuple):
        (spans, scores), (expected_spans, expected_scores) = result, expected
        assert spans == expected_spans
        assert scores == pytest.approx(expected_scores, abs=1e-5)
    else:
        assert result == expected
