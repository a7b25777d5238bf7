"""A server of the page Annotate, with a file of its own."""

import threading
import time
from contextlib import contextmanager

import uvicorn

from spacy_psa.server.annotate import annotate_view
from spacy_psa.server.annotate_plan import AnnotatePlan
from spacy_psa.server.app import create_app
from spacy_psa.server.listen import open_socket
from spacy_psa.server.models import ServedModel

SPOKEN = [
    "Ada Lovelace met Charles Babbage in London .",
    "Acme hired Ada and left Bath",
    "Babbage wrote to Mary Anne Evans .",
]


@contextmanager
def annotating(nlp, folder, lines=SPOKEN, model="none", **options):
    """The work on a new or old file of a folder, and the app that shows it."""
    texts = None
    if lines:
        texts = folder / "texts.txt"
        texts.write_text("\n".join(lines) + "\n", encoding="utf8")
    options = {"annotator": "ann", **options}
    plan = AnnotatePlan(folder / "names.sqlite", texts, **options)
    served = ServedModel("small", nlp)
    with plan.open() as store, plan.work(store, served, str(model)) as work:
        yield work, create_app([served], views=[annotate_view(work)])


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
