"""Commands import what they need, not all that spaCy could import."""

import subprocess
from pathlib import Path

import pytest

from spacy_psa.entry_points import only_factories
from tests.helpers.patience import PATIENCE
from tests.helpers.quick_python import PYTHON

RUN = """
import sys
from spacy_psa.app import main
sys.argv = ["spacy-psa", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    print("exit code", end.code)
for name in ("spacy", "torch", "transformers", "pandas", "spacy.cli", "sympy"):
    print(name, name in sys.modules)
"""
LATER = """
import sys
from spacy_psa.entry_points import leave_out_commands
leave_out_commands()
import spacy
assert "spacy.cli" not in sys.modules
print(spacy.info(silent=True)["spacy_version"] == spacy.__version__)
leave_out_commands()
from spacy.cli.info import info, info_cli
print(spacy.cli.info is info)
"""


def imported(*arguments: object, program: str = RUN) -> str:
    done = subprocess.run(
        [PYTHON, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("text", "code"), [("Ada\tB-PER\nleft\tO\n\n", 0), ("Ada\n", 2)])
def test_a_corpus_is_made_or_refused_without_torch(tmp_path: Path, text: str, code: int):
    (tmp_path / "in").mkdir()
    for part in ("train", "dev"):
        (tmp_path / "in" / f"{part}.iob").write_text(text)
    shown = imported("init", "corpus", tmp_path / "in", tmp_path / "out")
    assert f"exit code {code}" in shown
    assert "spacy True\ntorch False\ntransformers False\npandas False\nspacy.cli False" in shown
    assert (tmp_path / "out" / "train.spacy").exists() == (code == 0)


def test_annotation_imports_the_packages_of_its_own_components(trained_path: Path, tmp_path: Path):
    (tmp_path / "in.txt").write_text("Ada left.\n")
    shown = imported("annotate", trained_path, tmp_path / "in.txt", tmp_path / "out.jsonl")
    assert "exit code 0" in shown and "torch True\ntransformers False" in shown
    assert "spacy.cli False" in shown
    # Some versions of torch import it themselves.
    assert imported(program="import sys, torch; print('sympy', 'sympy' in sys.modules)") in shown


def test_the_commands_of_spacy_are_imported_when_they_are_used():
    assert imported(program=LATER) == "True\nTrue\n"


def test_the_packages_of_all_components_are_imported_again_after_the_block():
    from spacy.util import registry

    with only_factories(["crf_ner", "no_such"]):
        assert not registry._entry_point_factories.entry_points
    assert registry._entry_point_factories.entry_points
