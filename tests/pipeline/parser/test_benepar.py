"""benepar itself and this package in one process, in either order."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.skipif(
    find_spec("benepar") is None,
    reason="needs benepar, which is no dependency: pip install benepar",
)
OURS = "from spacy_psa.pipeline.parser import extensions\nextensions.register_extensions()\n"
THEIRS = "import benepar\n"
LOOK = """
import spacy
from spacy.tokens import Doc, Span
doc = Doc(spacy.blank("en").vocab, words=["Ada", "left"])
doc.spans["constituents"] = [Span(doc, 0, 2, "S")]
assert doc[:]._.labels == ("S",) and doc[:]._.parse_string == "(S (X Ada) (X left))"
other = Doc(doc.vocab, words=["a", "b"])
try:
    other[:]._.labels
except Exception as error:
    frames = error.__traceback__
    while frames.tb_next:
        frames = frames.tb_next
    print(frames.tb_frame.f_globals["__name__"].partition(".")[0])
"""


def run(code):
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:spacy_psa", "-c", code],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "code",
    [
        THEIRS + OURS,
        OURS + "extensions.remove_extensions()\n" + THEIRS + "extensions.register_extensions()\n",
    ],
    ids=["benepar first", "ours first, and removed"],
)
def test_each_answers_for_its_own_docs(code):
    assert run(code + LOOK) == ["benepar"]


def test_benepar_after_ours_is_an_error_of_spacys():
    code = (
        OURS + "try:\n    import benepar\nexcept ValueError as error:\n    print(str(error)[:6])\n"
    )
    assert run(code) == ["[E090]"]
