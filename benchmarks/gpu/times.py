"""The time on a machine with a GPU, where work goes on after a call has returned."""

import time

import torch


def synchronize() -> float:
    """Wait until the GPU, if one is in use, has done its work; the moment, in seconds.

    Examples:
        >>> synchronize() <= synchronize()
        True
    """
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.monotonic()
