"""Opens the port of a server before the models are loaded, and serves an app on it."""

import os
import socket
import threading
from types import FrameType
from typing import Any

import uvicorn

from spacy_psa.errors import InputError

GRACE = 5
"""Seconds that requests have to end after a signal."""
LAST = 9
"""Seconds after a signal at which the process ends, even if a model is at work."""


def open_socket(host: str, port: int) -> socket.socket:
    """Open a port; 0 for any that is free.

    Raises:
        InputError: if the port is in use, or the address is not one of this machine.
    """
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, number)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(address)
            opened.listen(128)
        except BaseException:
            opened.close()
            raise
        return opened
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"--host {host} --port {port} cannot be opened ({reason}): another program may use "
            "it; choose another --port, or 0 for any"
        ) from error


class Server(uvicorn.Server):
    """A server that ends soon after a signal, whatever is open."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the server; and the process, since the interpreter would wait for its threads."""
        super().handle_exit(sig, frame)
        timer = threading.Timer(LAST, os._exit, [128 + sig])
        timer.daemon = True
        timer.start()


def run(app: Any, listening: socket.socket) -> None:
    """Serve an app on an open port, until a signal ends it."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=GRACE,
    )
    Server(config).run(sockets=[listening])
