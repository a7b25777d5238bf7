"""A server from its settings to its end: it opens a port, loads models and serves an app."""

import os
import re
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote

import torch
import uvicorn

from spacy_psa.errors import InputError
from spacy_psa.loading import load_pipeline, model_names
from spacy_psa.studio.server.annotate import annotate_view
from spacy_psa.studio.server.annotate_plan import AnnotatePlan
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.compare import compare_view
from spacy_psa.studio.server.guard import LOOPBACK, Settings
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.studio.server.project import project_view
from spacy_psa.studio.server.review import review_view

GRACE = 5
"""Seconds that requests have to end after a signal."""
LAST = 9
"""Seconds after a signal at which the process ends, even if a model is at work."""


@dataclass(frozen=True)
class ServerPlan:
    """The pipelines of a server, and its address and views."""

    models: Sequence[str]
    settings: Settings
    """The limits; `hosts` follow from the address."""
    host: str = "127.0.0.1"
    port: int = 8000
    gold: Path | None = None
    """The gold documents of the view Compare."""
    annotate: AnnotatePlan | None = None
    """The settings of the view Annotate."""
    review: Path | None = None
    """The probable errors of the view Review."""
    component: str | None = None
    train: Path | None = None
    gpu_id: int = -1
    threads: int = 1
    """Threads of the models on the CPU."""
    confidence: bool = True
    """Whether annotation over HTTP has probabilities."""

    def check(self) -> None:
        """Check the token and the names of the server."""
        token = self.settings.token
        if token is not None and (not token.isprintable() or " " in token or not token):
            raise InputError(
                "--token is empty or has a blank or a character that cannot be shown: use letters, "
                "digits and marks, or leave it out"
            )
        for name in self.settings.allowed:
            if not re.fullmatch(r"([\w.-]+|\[[0-9a-fA-F:]+\])(:\d+)?", name):
                raise InputError(f"--allow-host {name}: use only a name, such as names.example.org")
        if self.host not in LOOPBACK and not token:
            raise InputError(
                f"--host {self.host} lets other machines ask this server: set a --token that they "
                "must show"
            )


def serve(plan: ServerPlan, tell: Callable[[str], None], warn: Callable[[str], None]) -> None:
    """Serve pipelines, until a signal ends the process.

    Args:
        plan: the pipelines and settings.
        tell: called with the address of the page.
        warn: called with a notice.
    """
    plan.check()
    torch.set_num_threads(plan.threads)
    names = model_names(plan.models) if plan.models else {}
    about = plan.annotate
    with open_socket(plan.host, plan.port) as listening, ExitStack() as stack:
        store = about and stack.enter_context(about.open())
        served = [
            ServedModel(name, load_pipeline(path, plan.gpu_id), plan.confidence)
            for name, path in names.items()
        ]
        first: str | None = next(iter(names.values()), None)
        if about and not served:
            name, first, nlp = about.model()
            served = [ServedModel(name, nlp, plan.confidence)]
        views = []
        if plan.gold:
            views.append(compare_view(served, plan.gold, plan.component, plan.train))
        if plan.review:
            views.append(review_view(plan.review))
        if about and store:
            work = about.work(store, served[0], first, warn)
            if first and (notice := about.notice(first)):
                warn(notice)
            views += [annotate_view(work, about.guidelines), project_view(work)]
        settings = replace(plan.settings, hosts=LOOPBACK if plan.host in LOOPBACK else None)
        shown = f"[{plan.host}]" if ":" in plan.host else plan.host
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        query = f"?token={quote(settings.token, safe='')}" if settings.token else ""
        tell(f"{address}{query}  (Ctrl+C ends the server)")
        run(create_app(served, settings, views), listening)


def open_socket(host: str, port: int) -> socket.socket:
    """Open a port; 0 for any that is free."""
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
