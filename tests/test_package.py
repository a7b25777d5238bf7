"""The package as it is installed: names, entry points, and what an import costs."""

import importlib
import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from spacy import Language
from spacy.util import registry

import spacy_psa
from spacy_psa.modules.psa import PSABiLSTM
from tests.helpers.paths import ROOT
from tests.helpers.quick_python import PYTHON

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
ENTRY_POINTS = [
    (group, name, target)
    for group, names in PROJECT["entry-points"].items()
    for name, target in names.items()
]
REGISTERED = [(group, name) for group, name, _ in ENTRY_POINTS if group != "spacy_cli"]


def in_a_new_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [PYTHON, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_imports_nothing_heavy():
    loaded = in_a_new_process("import sys, spacy_psa; print(*sys.modules)").split()
    assert "spacy_psa" in loaded
    assert not {"torch", "spacy", "numba", "thinc", "numpy", "typer"} & {*loaded}


def test_the_version_is_that_of_the_installed_distribution():
    assert spacy_psa.__version__ == metadata.version("spacy-psa")


def test_the_package_is_typed():
    assert (Path(spacy_psa.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize(
    ("group", "name", "target"), ENTRY_POINTS, ids=[name for _, name, _ in ENTRY_POINTS]
)
def test_every_entry_point_leads_somewhere(group, name, target):
    module, attribute = target.split(":")
    assert callable(getattr(importlib.import_module(module), attribute))


def test_every_script_leads_somewhere():
    for target in PROJECT["scripts"].values():
        module, attribute = target.split(":")
        assert callable(getattr(importlib.import_module(module), attribute))


def test_the_installed_entry_points_are_those_of_the_project():
    installed = {
        (entry.group, entry.name, entry.value)
        for entry in metadata.distribution("spacy-psa").entry_points
        if entry.group != "console_scripts"
    }
    assert installed == {*ENTRY_POINTS}, "install the package again: pip install -e ."


@pytest.mark.parametrize(("group", "name"), REGISTERED, ids=[name for _, name in REGISTERED])
def test_spacy_finds_every_registered_name(group, name):
    Language()  # which reads the entry points of factories, the first one in a process
    kind = group.split("_", 1)[1]
    module, attribute = PROJECT["entry-points"][group][name].split(":")
    assert registry.get(kind, name) is getattr(importlib.import_module(module), attribute)
    if group == "spacy_factories":
        assert Language.get_factory_meta(name).factory == name


def test_our_names_carry_the_package_and_a_version():
    for group, name in REGISTERED:
        if group != "spacy_factories":
            assert name.startswith("spacy-psa.") and name.endswith(".v1"), name


# Without compiled kernels

FORWARD = """
import json, sys, warnings
{before}
import torch
from spacy_psa.kernels import available
from spacy_psa.modules.psa import PSABiLSTM
from tests.helpers.paths import ROOT
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.manual_seed(0)
    module = PSABiLSTM(4, 3).eval()
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(9, 4, generator=generator)
    output = module(x, torch.tensor([3, 1, 5])).tolist()
    module(x, torch.tensor([3, 1, 5]))
warned = [str(w.message) for w in caught if "numba" in str(w.message)]
imported = sys.modules.get("numba") is not None
print(json.dumps([output, available(), warned, imported]))
"""


def forward_here():
    torch.manual_seed(0)
    module = PSABiLSTM(4, 3).eval()
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(1))
    return module(x, torch.tensor([3, 1, 5])).detach()


def test_kernels_can_be_turned_off():
    printed = in_a_new_process(FORWARD.format(before=""), SPACY_PSA_KERNELS="0")
    output, available, warned, imported = json.loads(printed)
    torch.testing.assert_close(torch.tensor(output), forward_here())
    assert not available and not imported and warned == []


def test_without_numba_everything_imports_and_one_warning_says_so():
    """A numba that cannot be imported, as `None` in sys.modules makes it."""
    before = """
sys.modules["numba"] = None
import importlib, pkgutil, spacy_psa
for module in pkgutil.walk_packages(spacy_psa.__path__, "spacy_psa."):
    if not module.name.startswith("spacy_psa.kernels.") and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
    printed = in_a_new_process(FORWARD.format(before=before), SPACY_PSA_KERNELS="1")
    output, available, warned, _ = json.loads(printed)
    torch.testing.assert_close(torch.tensor(output), forward_here())
    assert not available and len(warned) == 1


def test_every_config_is_data_of_the_package():
    package = Path(spacy_psa.__file__).parent
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["tool"]
    data = patterns["setuptools"]["package-data"]["spacy_psa"]
    packed = {path.relative_to(package) for pattern in data for path in package.glob(pattern)}
    listed = {path.relative_to(ROOT) for path in (ROOT / "configs").glob("*/*.*")}
    listed = {path for path in listed if path.suffix != ".toml"}
    assert len(listed) > 30 and listed <= packed


def test_actions_are_pinned_by_commit():
    """A tag can be moved to other code, a commit cannot."""
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert [each for each in used if not re.search(r"@[0-9a-f]{40}$", each)] == []


def requirements_of_tests() -> list[Requirement]:
    """All that `pip install spacy-psa[test]` asks for, with its extras."""
    extras, wanted = PROJECT["optional-dependencies"], [*PROJECT["dependencies"]]
    waiting = ["test"]
    for extra in waiting:  # which grows
        wanted += extras[extra]
        waiting += [more for each in extras[extra] for more in own_extras(each)]
    requirements = [Requirement(line) for line in wanted if not own_extras(line)]
    here = {"python_version": "3.11"}
    return [each for each in requirements if not each.marker or each.marker.evaluate(here)]


def own_extras(line: str) -> set[str]:
    requirement = Requirement(line)
    return requirement.extras if requirement.name == "spacy-psa" else set()


@pytest.mark.parametrize("file", ["requirements.lock", "constraints-lowest.txt"])
def test_all_that_the_tests_need_is_locked_in_a_version_that_they_allow(file):
    text = (ROOT / file).read_text(encoding="utf8")
    locked = dict(re.findall(r"^([\w.-]+)(?:\[.*\])?==([\w.+!]+)", text, re.MULTILINE))
    locked = {canonicalize_name(name): version for name, version in locked.items()}
    wrong = {}
    for each in requirements_of_tests():
        version = locked.get(canonicalize_name(each.name))
        if version is None or version not in each.specifier:
            wrong[str(each)] = version
    assert wrong == {}, "run `nox -s lock`"
