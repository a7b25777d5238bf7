"""The states of all random generators that a training draws from."""

import random
from typing import Any

import numpy
import torch


def get_random_states() -> dict[str, Any]:
    """The states of Python's, numpy's and torch's generators, on the CPU and on each GPU.

    They hold only what `torch.load(weights_only=True)` reads.
    """
    name, keys, position, has_gauss, gauss = numpy.random.get_state()
    return {
        "python": random.getstate(),
        "numpy": (name, torch.from_numpy(numpy.asarray(keys).astype("int64")), position),
        "numpy_gauss": (int(has_gauss), float(gauss)),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """Set all generators to states that `get_random_states` gave.

    States of GPUs are set where there are as many GPUs.
    """
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, keys, position = states["numpy"]
    numpy.random.set_state((name, keys.numpy().astype("uint32"), position, *states["numpy_gauss"]))
    torch.set_rng_state(states["torch"])
    if len(states["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(states["cuda"])
