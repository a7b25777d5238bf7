"""The packages that travel to a machine with a GPU."""

import subprocess
import sys
import tarfile
import zipfile

import pytest
from packaging.requirements import Requirement

from benchmarks.gpu import site
from tests.helpers.paths import ROOT


def wheel(folder, name, *needs, **files):
    """A wheel of a package of the given files, as pip takes it."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    required = "".join(f"Requires-Dist: {other}\n" for other in needs)
    tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{required}"
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/RECORD", "")
        for path, text in files.items():
            archive.writestr(f"{name}/{path.replace('__', '/').replace('_', '.')}", text)


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A folder of wheels in place of the registry."""
    folder = tmp_path / "registry"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    wheel(folder, "parsers", "numpy", "trees", code_py="one = 1", tests__case_py="", code_pyx="")
    wheel(folder, "trees", code_py="two = 2")
    wheel(folder, "numpy", code_py="")
    return folder


def test_packages_travel_with_what_they_need_and_without_what_is_there(
    registry, tmp_path, monkeypatch
):
    monkeypatch.setattr(site, "needed", lambda: ["parsers"])
    monkeypatch.setattr(site, "ROOT", tmp_path)
    (tmp_path / "constraints.txt").write_text("trees==1.0\n")
    site.pack_site("3.12", tmp_path / "site.tar.xz")
    with tarfile.open(tmp_path / "site.tar.xz") as archive:
        archive.extractall(tmp_path / "there", filter="data")
    found = {str(p.relative_to(tmp_path / "there")) for p in (tmp_path / "there").rglob("*.py*")}
    assert found == {"parsers/code.py", "trees/code.py"}
    read = "from parsers.code import one; from trees.code import two; print(one + two)"
    command = [sys.executable, "-c", read]
    env = {"PYTHONPATH": str(tmp_path / "there")}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    assert printed.stdout == "3\n"


def test_what_is_missing_in_the_registry_ends_it(registry, tmp_path, monkeypatch):
    monkeypatch.setattr(site, "needed", lambda: ["no-such-package"])
    with pytest.raises(subprocess.CalledProcessError):
        site.pack_site("3.12", tmp_path / "site.tar.xz")
    assert not (tmp_path / "site.tar.xz").exists()


def test_the_requirements_are_those_of_the_package():
    names = {Requirement(line).name for line in site.needed()}
    assert {"spacy", "thinc", "nltk"} <= names
    assert not names & set(site.THERE)
    assert (ROOT / "constraints.txt").exists()
