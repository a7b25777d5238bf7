"""`spacy-psa serve`: a page and an HTTP interface for trained pipelines."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.queue import Order


def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Folders of pipelines, or names of packages."),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for any that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            help="What each request must show; needed for other machines.", envvar="SPACY_PSA_TOKEN"
        ),
    ] = None,
    root_path: Annotated[
        str, typer.Option(help="The path of the page behind a proxy, such as /names.")
    ] = "",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="The name of the page behind a proxy, such as names.example.org; may be repeated."
        ),
    ] = None,
    max_bytes: Annotated[int, typer.Option(help="Bytes of a request.", min=1)] = 10_000_000,
    max_texts: Annotated[int, typer.Option(help="Texts of a request.", min=1)] = 1000,
    max_chars: Annotated[int, typer.Option(help="Characters of a text.", min=1)] = 100_000,
    max_seconds: Annotated[float, typer.Option(help="Seconds for a request.", min=0.001)] = 60.0,
    batch_size: Annotated[
        int, typer.Option(help="Texts that go through the model together.", min=1)
    ] = 64,
    gpu_id: Annotated[int, typer.Option(help="The GPU; -1 for the CPU.")] = -1,
    gold: Annotated[
        Path | None,
        typer.Option(help="Gold documents (.spacy): adds the view Compare of one or two models."),
    ] = None,
    annotate: Annotated[
        Path | None,
        typer.Option(
            help="File of decisions (SQLite): adds the view Annotate; it is made if there is none."
        ),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(help="Texts to annotate: one a line (.txt), JSON lines or .spacy."),
    ] = None,
    annotator: Annotated[
        str | None, typer.Option(help="Your name; by default that of the system.")
    ] = None,
    order: Annotated[
        Order, typer.Option(help="The text that comes first in Annotate.")
    ] = Order.entropy,
    seed: Annotated[int, typer.Option(help="Seed of the random order, and of Teach.")] = 0,
    dev: Annotated[
        Path | None, typer.Option(help="Gold .spacy file or folder by which Teach measures.")
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(help="Training data: Compare says which words it has; Teach mixes it in."),
    ] = None,
    component: Annotated[
        str | None, typer.Option(help="The component for Compare and Annotate.")
    ] = None,
) -> None:
    """
    Serve a page that shows what models find, and how sure they are; open it in a browser.

    The page takes corrections by clicks, and finds the best analysis that agrees with them. The
    same server annotates texts over HTTP: POST /api/annotate. /docs lists all of the interface.

    With --annotate, the page Annotate asks about texts, the most useful first, saves each decision,
    and trains the first model from them. The next start goes on where the last one ended.

    \b
    Example:
      spacy-psa serve training/model-best
      spacy-psa serve training/model-best --annotate names.sqlite --texts texts.jsonl
    """
    try:
        from spacy_psa.studio.server.annotate import AnnotatePlan, annotate_view
        from spacy_psa.studio.server.app import create_app
        from spacy_psa.studio.server.compare import compare_view
        from spacy_psa.studio.server.guard import LOOPBACK, Settings
        from spacy_psa.studio.server.listen import open_socket, run
        from spacy_psa.studio.server.models import ServedModel
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("spacy_psa"):
            raise
        raise InputError(
            f"{error.name} is not installed: pip install 'spacy-psa[serve]'"
        ) from error
    from spacy_psa.loading import load_pipeline

    if token is not None and (not token.isprintable() or " " in token or not token):
        raise InputError(
            "--token is empty or has a blank or a character that cannot be shown: use letters, "
            "digits and marks, or leave it out"
        )
    for name in allow_host or []:
        if not re.fullmatch(r"([\w.-]+|\[[0-9a-fA-F:]+\])(:\d+)?", name):
            raise InputError(f"--allow-host {name}: use only a name, such as names.example.org")
    if host not in LOOPBACK and not token:
        raise InputError(
            f"--host {host} lets other machines ask this server: set a --token that they must show"
        )
    if gold is None and annotate is None and (train or component):
        raise InputError(
            "--train and --component are for Compare and Annotate: also use --gold or --annotate"
        )
    plan = None
    if annotate is not None:
        plan = AnnotatePlan(annotate, texts, annotator, order, seed, component, dev, train, gpu_id)
    elif texts or dev:
        raise InputError("--texts and --dev are for Annotate: also use --annotate FILE")
    names = model_names(models)
    with open_socket(host, port) as listening, ExitStack() as stack:
        store = plan and stack.enter_context(plan.open())
        served = [ServedModel(name, load_pipeline(path, gpu_id)) for name, path in names.items()]
        views = [compare_view(served, gold, component, train)] if gold else []
        if plan and store:
            path = next(iter(names.values()))
            work = plan.work(store, served[0], path)
            if notice := plan.notice(path):
                typer.echo(notice, err=True)
            views.append(annotate_view(work))
        hosts = LOOPBACK if host in LOOPBACK else None
        settings = Settings(
            token=token,
            hosts=hosts,
            max_bytes=max_bytes,
            max_texts=max_texts,
            max_chars=max_chars,
            max_seconds=max_seconds,
            batch=batch_size,
            allowed=tuple(name.lower() for name in allow_host or ()),
            root_path=f"/{root_path.strip('/')}".rstrip("/"),
        )
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        query = f"?token={quote(token, safe='')}" if token else ""
        typer.echo(f"{address}{query}  (Ctrl+C ends the server)")
        run(create_app(served, settings, views), listening)


def model_names(models: list[str]) -> dict[str, str]:
    """Give each model a name: that of its folder, with the folders before if two are equal."""
    paths = {model: Path(model).parts for model in dict.fromkeys(models)}
    for length in range(1, max(len(parts) for parts in paths.values()) + 1):
        names = {"/".join(parts[-length:]): model for model, parts in paths.items()}
        if len(names) == len(paths):
            return names
    return {model: model for model in paths}
