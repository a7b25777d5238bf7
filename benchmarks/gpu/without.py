"""Switches off what speeds up a GPU, to measure what each of it gains."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor

from spacy_psa.pipeline import overlap
from spacy_psa.structs.emission_chain import EmissionChain
from spacy_psa.training import ahead


def _without_thread_in_training() -> None:
    ahead.STEPS = 0


def _without_thread_in_annotation() -> None:
    overlap.AHEAD = 0


def _waiting_for_copies() -> None:
    """Tensors go to the GPU from memory that is not pinned, and the program waits for each."""
    move: Any = Tensor.to
    Tensor.pin_memory = lambda x, *_: x  # type: ignore[method-assign]
    Tensor.to = lambda x, *given, non_blocking=False, **rest: move(x, *given, **rest)  # type: ignore[method-assign,assignment]


def _with_scaled_sums() -> None:
    """Sums over tag sequences need a dozen launches for each token, not one in all."""
    EmissionChain._sums_apply = EmissionChain.is_scaled  # type: ignore[method-assign]


def _without_triton() -> None:
    os.environ["SPACY_PSA_TRITON"] = "0"


WITHOUT: dict[str, Callable[[], None]] = {
    "ahead": _without_thread_in_training,
    "overlap": _without_thread_in_annotation,
    "pinned": _waiting_for_copies,
    "pairs": _with_scaled_sums,
    "triton": _without_triton,
}
"""The names are for the thread that reads training examples ahead, the one that predicts the next
docs, copies that nothing waits for, the chain kernel where emissions and transitions are apart, and
the chart kernel."""


def switch_off(names: Iterable[str]) -> None:
    """Switch some of `WITHOUT` off in this process, before the GPU is used."""
    for name in names:
        WITHOUT[name]()
