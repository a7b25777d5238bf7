"""Structured distributions: two ways to compute them, and how exact they are."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

from spacy_psa import kernels

INF = float("inf")
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-10}
PATHS = ["kernel", "torch"]

quick = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def use(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Compute with the compiled kernels, or without them."""
    if path == "kernel":
        pytest.importorskip("numba")
    monkeypatch.setattr(kernels, "available", lambda: path == "kernel")


def on_both_paths(compute: Callable[[], Any]) -> tuple[Any, Any]:
    """What `compute` gives with the compiled kernels, and without them."""
    results = []
    for path in PATHS:
        with pytest.MonkeyPatch.context() as patch:
            use(patch, path)
            results.append(compute())
    ours, theirs = results
    return ours, theirs
