"""Opens the port of a server before the models are loaded."""

import socket

from spacy_psa.errors import InputError


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
