"""The examples in the docstrings of benchmarks/ are right."""

import doctest
import importlib

import pytest

from benchmarks.record import FOLDER
from tests.helpers.paths import ROOT

MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted(FOLDER.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried and not failed
