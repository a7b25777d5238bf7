"""An app on a real port."""

import threading
import time
from contextlib import contextmanager

import uvicorn

from spacy_psa.studio.server.serve import open_socket


@contextmanager
def running(app):
    """The address of an app, served by a thread."""
    listening = open_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
