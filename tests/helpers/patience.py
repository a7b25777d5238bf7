"""How long a test waits for what should happen soon."""

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0
"""Seconds. A busy machine is slow, and a virtual one may stand still for a minute."""


def wait_for(condition: Callable[[], Any], pause: float = 0.02) -> Any:
    """Ask again and again, with pauses in seconds, until the answer is true, and return it."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, "it does not happen"
        time.sleep(pause)
    return found
