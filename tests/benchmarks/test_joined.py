"""Joined models of different names are different pipelines."""

import sys
from pathlib import Path

from benchmarks import joined


def test_the_pipeline_has_the_name_of_the_record(monkeypatch):
    """A pipeline that is there is taken as it is, so two sets of models must not share one."""
    folders, records = [], []
    monkeypatch.setattr(
        joined, "measure", lambda models, folder, data: folders.append(folder) or {}
    )
    monkeypatch.setattr(joined, "write_record", lambda name, *_, **__: records.append(name))
    for name in ("first", "second"):
        words = ["joined", "recipes", "data", "model", "--name", name]
        monkeypatch.setattr(sys, "argv", words)
        joined.main()
    assert folders == [Path("training/recipes/first"), Path("training/recipes/second")]
    assert records == ["first", "second"]
