"""How many functions a doc and an example pass, and whether CONTRIBUTING.md names their files."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spacy_psa
from tests.helpers.paths import ROOT
from tests.helpers.pipelines import TEXTS, make_examples, make_nlp, small_model

PACKAGE = Path(spacy_psa.__file__).parent
ROOMS = ("pipeline", "architectures", "sentences.py", "ragged.py")
"""The rooms whose files CONTRIBUTING.md names one by one."""


def passed(function: Callable[[], Any]) -> list[Path]:
    """List the file of each function of the package that is called, below the package."""
    files: list[Path] = []

    def look(frame: Any, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            files.append(path.relative_to(PACKAGE))

    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(None)
    return files


@pytest.fixture(scope="module")
def way() -> dict[str, list[Path]]:
    """The files that a short text passes, in annotation and in training."""
    nlp = make_nlp(small_model())
    example = make_examples(nlp)[0]
    nlp.initialize(lambda: [example])
    pipe, optimizer = nlp.get_pipe("ner"), nlp.create_optimizer()
    pipe.update([example], sgd=optimizer)
    docs = [nlp.make_doc(TEXTS[0]) for _ in range(2)]
    pipe(docs[0])
    return {
        "annotation": passed(lambda: list(pipe.pipe([docs[1]]))),
        "training": passed(lambda: pipe.update([example], sgd=optimizer)),
    }


@pytest.mark.parametrize("step, most", [("annotation", 200), ("training", 400)])
def test_a_short_text_takes_few_calls(way: dict[str, list[Path]], step: str, most: int):
    assert 0 < len(way[step]) <= most


def test_contributing_names_the_files_that_a_doc_passes(way: dict[str, list[Path]]):
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")
    section = page.split("## The way of a Doc")[1].split("\n## ")[0]
    named = set(re.findall(r"\w+\.py", section))
    assert named <= {path.name for path in PACKAGE.rglob("*.py")}
    files = {path for path in way["annotation"] if path.parts[0] in ROOMS}
    assert len(files) > 10
    assert {path.name for path in files} <= named
