"""The examples in the docstrings of benchmarks/ are right."""

import doctest
import importlib

from benchmarks.record import FOLDER
from tests.helpers.paths import ROOT

MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted(FOLDER.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf8")
]


def test_examples_run():
    results = {name: doctest.testmod(importlib.import_module(name)) for name in MODULES}
    assert [name for name, (failed, tried) in results.items() if failed or not tried] == []
    assert results
