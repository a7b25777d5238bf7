"""How many functions of the package a doc and an example pass."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spacy_psa
from tests.helpers.pipelines import TEXTS, make_examples, make_nlp, small_model

PACKAGE = str(Path(spacy_psa.__file__).parent)


def calls(function: Callable[[], Any]) -> int:
    """Count the calls of functions of the package."""
    count = 0

    def look(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("step, most", [("annotation", 200), ("training", 400)])
def test_a_short_text_takes_few_calls(step: str, most: int):
    nlp = make_nlp(small_model())
    example = make_examples(nlp)[0]
    nlp.initialize(lambda: [example])
    pipe, optimizer = nlp.get_pipe("ner"), nlp.create_optimizer()
    pipe.update([example], sgd=optimizer)
    docs = [nlp.make_doc(TEXTS[0]) for _ in range(2)]
    pipe(docs[0])
    way = {
        "annotation": lambda: list(pipe.pipe([docs[1]])),
        "training": lambda: pipe.update([example], sgd=optimizer),
    }
    assert 0 < calls(way[step]) <= most
