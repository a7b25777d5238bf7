"""Ray, started on this machine or joined on a cluster."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

import ray

from spacy_psa.errors import InputError

STORE = 256 * 2**20
"""The bytes of the object store of a local start; only small reports go through it."""

WAIT = 5.0
"""Seconds to wait for the head of a cluster."""


def check_address(address: str, given: str = "--address") -> None:
    """Raise InputError if nothing answers at an address, since Ray tries it for minutes.

    Args:
        address: HOST:PORT or ray://HOST:PORT; other addresses, such as "auto", pass.
        given: where the address is from.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), WAIT).close()
    except (OSError, OverflowError, UnicodeError) as error:  # no host has such a port or name
        raise InputError(
            f"{given} {address}: there is no Ray cluster ({error}); check the address"
        ) from error


@contextmanager
def ray_cluster(workers: int, address: str | None = None) -> Iterator[None]:
    """Have Ray inside of this block.

    Args:
        workers: the number of cores of a start on this machine; -1 for all.
        address: the address of a Ray cluster; None is that of the variable RAY_ADDRESS, as for
            Ray, or starts Ray on this machine if that is not set.
    """
    given = "--address" if address else "RAY_ADDRESS"
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    check_address(address, given)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    handler = signal.getsignal(signal.SIGTERM) or signal.SIG_DFL
    try:
        if address == "local":
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(
                address=address,
                num_cpus=workers if workers > 0 else None,
                include_dashboard=False,
                object_store_memory=STORE,
                _node_ip_address="127.0.0.1",
                **quiet,
            )
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, ValueError) as error:
        raise InputError(f"{given} {address}: there is no Ray cluster ({error})") from error
    try:
        if current_thread() is main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray has set one that prints its stack.
        yield
    finally:
        ray.shutdown()
