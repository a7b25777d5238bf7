"""What tests of both distributions run over."""

import pytest
import torch

from tests.helpers.structs import PATHS, use


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The compiled kernels, or torch alone."""
    use(monkeypatch, request.param)
    return request.param


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param
