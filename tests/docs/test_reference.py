"""The reference names all that the package registers, and is that of the code."""

import importlib
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from docs.generate import architectures, components, python_api, training
from docs.generate.__main__ import REFERENCE, main, pages
from docs.generate.commands import commands
from docs.generate.registry import PACKAGE, groups, names

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
DOCUMENTED = {components.GROUP, architectures.GROUP, *training.GROUPS}


@pytest.mark.parametrize("name", pages())
def test_page_is_that_of_the_code(name: str) -> None:
    written = (REFERENCE / name).read_text(encoding="utf8")
    assert written == pages()[name], "run `python -m docs.generate`"


def test_there_is_no_other_page() -> None:
    assert {str(path.relative_to(REFERENCE)) for path in REFERENCE.rglob("*")} == set(pages())


def test_the_installed_package_registers_what_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    named = {(g, name) for g, points in project["entry-points"].items() for name in points}
    named |= {("console_scripts", name) for name in project["scripts"]}
    installed = {(point.group, point.name) for point in distribution(PACKAGE).entry_points}
    assert installed == named, "install the package again"


def test_each_kind_of_name_has_a_page() -> None:
    assert groups() == DOCUMENTED | {"console_scripts", "spacy_cli"}


def test_each_registered_name_has_an_entry() -> None:
    text = "\n".join(pages().values())
    entries = [name for group in DOCUMENTED for name in names(group)]
    assert len(entries) > 40
    assert [name for name in entries if f"# `{name}` {{ #" not in text] == []


def test_each_command_has_an_entry() -> None:
    text = pages()["commands.md"]
    found = [command.name for command in commands()]
    assert "convert conll2003" in found
    assert [name for name in found if f"## `spacy-psa {name}` {{ #" not in text] == []


def test_each_attribute_has_an_entry() -> None:
    assert components.registered_attributes() == set(components.ATTRIBUTES)


@pytest.mark.parametrize("name", pages())
def test_each_argument_has_a_meaning(name: str) -> None:
    header, without = "", []
    for line in pages()[name].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|"):
            header = ""
        elif not header:
            header = cells[-1]
        elif header == "meaning" and not cells[-1]:
            without.append(line)
    assert without == []


@pytest.mark.parametrize("module", [architectures, components])
def test_a_name_without_an_entry_is_an_error(module: object) -> None:
    with pytest.raises(KeyError, match="add an entry"):
        module.entry("spacy-psa.Unheard.v1")  # type: ignore[attr-defined]


def test_a_wrong_width_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "spacy-psa.BiLSTM.v1"
    wrong = architectures.Entry("encode", "3 * hidden")
    monkeypatch.setitem(architectures.ENTRIES, "BiLSTM", wrong)
    with pytest.raises(ValueError, match="output width"):
        architectures.check_width(name, names(architectures.GROUP)[name])


def test_no_entry_is_of_a_name_that_is_gone() -> None:
    registered = {f"{PACKAGE}.{name}.v1" for name in architectures.ENTRIES}
    assert registered == set(names(architectures.GROUP))
    assert set(components.ENTRIES) == set(names(components.GROUP))


@pytest.mark.parametrize("identifier", python_api.identifiers())
def test_documented_object_exists(identifier: str) -> None:
    parts = identifier.split(".")
    for depth in range(len(parts), 0, -1):
        try:
            item = importlib.import_module(".".join(parts[:depth]))
        except ModuleNotFoundError:
            continue
        for part in parts[depth:]:
            item = getattr(item, part)
        return
    raise AssertionError(f"{identifier} cannot be imported")


def test_pages_are_written(tmp_path: Path) -> None:
    main(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(pages())


def test_figures_are_those_of_their_scripts(tmp_path: Path) -> None:
    folder = ROOT / "docs/figures"
    subprocess.run([sys.executable, str(folder / "draw.py"), str(tmp_path)], check=True)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_bytes() for path in folder.glob("*.svg")}
    assert drawn == kept, "run `python docs/figures/draw.py`"
    text = "\n".join(path.read_text(encoding="utf8") for path in (ROOT / "docs").rglob("*.md"))
    assert [name for name in kept if name not in text] == []
