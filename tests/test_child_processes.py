"""A child process imports from the places of its parent, and not from the current folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from spacy_psa.child_processes import child_command, child_environment
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.processes import JOB, start
from spacy_psa.laboratory.performance.processes import elsewhere
from tests.helpers.quick_python import PYTHON

PROGRAM = "import json, queue, sys; json.dump([queue.__file__, __name__, sys.argv], sys.stdout)"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a file that has the name of a module of Python."""
    monkeypatch.setattr(sys, "executable", PYTHON)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queue.py").write_text("from pathlib import Path\nPath('imported').touch()\n")
    return tmp_path


@pytest.mark.parametrize("version", [(3, 10), (3, 11)])
def test_a_module_runs_with_its_arguments_and_without_the_current_folder(
    folder, tmp_path_factory, monkeypatch, version
):
    if sys.version_info < version:
        pytest.skip("Python 3.10 has no -P")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(elsewhere)
    monkeypatch.setattr(sys, "version_info", version)
    command = child_command("program", "a", "b")
    done = subprocess.run(command, env=child_environment(), capture_output=True, check=True)
    standard, program = Path(subprocess.__file__).parent / "queue.py", elsewhere / "program.py"
    assert done.stdout.decode() == f'["{standard}", "__main__", ["{program}", "a", "b"]]'
    assert not (folder / "imported").exists()


def test_runs_of_plans_and_measurements_import_nothing_of_the_current_folder(folder):
    (folder / "run").mkdir()
    assert start(Path("run"), ["-1", "0"], module=JOB).wait() != 0
    assert "record.json" in (folder / "run" / "output.txt").read_text()
    with pytest.raises(InputError, match="model"):
        elsewhere("load", str(folder / "model"))
    assert not (folder / "imported").exists()
