"""Which room of the package may import which; the contracts stand in pyproject.toml."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.helpers.quick_python import PYTHON

ROOT = Path(__file__).parents[1]
ROOMS = [path.name for path in (ROOT / "spacy_psa").iterdir() if (path / "__init__.py").exists()]


def lint(folder):
    command = [PYTHON, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_no_import_breaks_a_contract():
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_an_import_from_above_is_found(tmp_path):
    for file in (
        "pyproject.toml",
        *(
            str(path.relative_to(ROOT))
            for package in ("spacy_psa", "benchmarks")
            for path in (ROOT / package).rglob("*.py")
        ),
    ):
        target = tmp_path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((ROOT / file).read_text(encoding="utf8"), encoding="utf8")
    bridge = tmp_path / "spacy_psa" / "bridge" / "shim.py"
    bridge.write_text(bridge.read_text() + "\nfrom spacy_psa.training import schedules\n")
    result = lint(tmp_path)
    assert result.returncode == 1
    assert "spacy_psa.bridge.shim -> spacy_psa.training" in result.stdout


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_what_it_is_for(room):
    text = (ROOT / "spacy_psa" / room / "__init__.py").read_text()
    assert text.startswith('"""'), f"spacy_psa/{room}/__init__.py has no docstring"


def test_contributing_lists_the_rooms_in_the_order_of_their_contract():
    contract = (ROOT / "pyproject.toml").read_text().split("layers = [")[1].split("]")[0]
    layers = [layer.split(" | ") for layer in re.findall(r'"(.+)"', contract)]
    order = {room: number for number, layer in enumerate(layers) for room in layer}
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8").split("## The rooms")[1]
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)]
    assert sorted(room for row in rows for room in row) == sorted(order)
    numbers = [number for row in rows for number in sorted(order[room] for room in row)]
    assert numbers == sorted(numbers)
