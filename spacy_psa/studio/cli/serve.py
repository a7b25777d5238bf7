"""`spacy-psa serve`: a page and an HTTP interface for trained pipelines."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from spacy_psa.cli.options import Gpu, Lang, Vectors
from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.queue import Order


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="Folders of pipelines, or names of packages; none with --labels.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for any that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            help="Token of each request; needed for other machines.",
            envvar="SPACY_PSA_TOKEN",
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
    gpu_id: Gpu = -1,
    threads: Annotated[int, typer.Option(help="Threads of the models on the CPU.", min=1)] = 1,
    confidence: Annotated[
        bool, typer.Option(help="Whether annotation over HTTP has probabilities.")
    ] = True,
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
    review: Annotated[
        Path | None,
        typer.Option(help="Probable errors, from `find-errors`: adds the view Review."),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(help="Texts to annotate: one on each line (.txt), JSON lines or .spacy."),
    ] = None,
    labels: Annotated[
        str,
        typer.Option(help="Labels, such as PER,ORG,LOC, to begin Annotate without a model."),
    ] = "",
    patterns: Annotated[
        list[Path] | None,
        typer.Option(
            help="Patterns as of spaCy's entity_ruler, which suggest spans; may be repeated."
        ),
    ] = None,
    task: Annotated[
        Literal["ner", "chunker", "tagger"],
        typer.Option(help="The annotation to learn, without a model."),
    ] = "ner",
    lang: Lang = "en",
    vectors: Vectors = None,
    base: Annotated[
        str | None,
        typer.Option(help="Pretrained transformer of the first model, as for `init config`."),
    ] = None,
    guidelines: Annotated[
        Path | None,
        typer.Option(help="Guidelines that Annotate shows next to the text: Markdown or text."),
    ] = None,
    annotator: Annotated[
        str | None, typer.Option(help="Your name; by default that of the system.")
    ] = None,
    order: Annotated[
        Order, typer.Option(help="The text that comes first in Annotate.")
    ] = Order.entropy,
    seed: Annotated[int, typer.Option(help="Seed of the random order, and of Teach.")] = 0,
    dev: Annotated[
        Path | None, typer.Option(help="Gold .spacy file or folder on which Teach measures.")
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(help="Training data: Compare looks up words in it; Teach mixes it in."),
    ] = None,
    component: Annotated[
        str | None, typer.Option(help="The component for Compare and Annotate.")
    ] = None,
) -> None:
    """
    Serve a page and an HTTP interface for models.

    The page shows predictions with their probabilities. A click on it corrects the model, which
    then finds the best analysis that agrees. The same server annotates texts over HTTP: POST
    /api/annotate. /docs lists all of the interface.

    With --annotate, the page Annotate asks about texts, the most useful first, saves each decision,
    and trains the first model from them. The next start continues where the last one ended.

    With --labels, no model is needed: the first Teach trains one from your decisions, and then its
    suggestions come, the least certain texts first. Labels can also be added on the page.

    With --patterns, the spans that match are suggested from the start. Teach learns a weight for
    each file and label, and texts in which the model contradicts the patterns come first.

    \b
    Example:
      spacy-psa serve training/model-best
      spacy-psa serve training/model-best --annotate names.sqlite --texts texts.jsonl
      spacy-psa serve --labels PER,ORG,LOC --texts texts.txt --annotate names.sqlite
    """
    try:
        from spacy_psa.studio.active_learning.beginning import Beginning
        from spacy_psa.studio.server.annotate_plan import AnnotatePlan
        from spacy_psa.studio.server.guard import Settings
        from spacy_psa.studio.server.serve import ServerPlan
        from spacy_psa.studio.server.serve import serve as run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("spacy_psa"):
            raise
        raise InputError(
            f"{error.name} is not installed: pip install 'spacy-psa[serve]'"
        ) from error

    if gold is None and annotate is None and (train or component):
        raise InputError(
            "--train and --component are for Compare and Annotate: also use --gold or --annotate"
        )
    if not models and annotate is None:
        raise InputError("name a MODEL, or begin without one: --labels PER,ORG --annotate FILE")
    if labels and models:
        raise InputError("--labels are for annotation without a MODEL: leave one of them out")
    about = begin = None
    if labels:
        names = tuple(label.strip() for label in labels.split(","))
        begin = Beginning(labels=names, task=task, lang=lang, vectors=vectors, base=base)
    if annotate is not None:
        about = AnnotatePlan(
            annotate,
            texts,
            annotator,
            order,
            seed,
            component,
            dev,
            train,
            gpu_id,
            begin,
            guidelines,
            tuple(patterns or ()),
        )
    elif texts or dev or guidelines or patterns:
        raise InputError(
            "--texts, --dev, --guidelines and --patterns are for Annotate: also use --annotate FILE"
        )
    settings = Settings(
        token=token,
        max_bytes=max_bytes,
        max_texts=max_texts,
        waiting=max(Settings.waiting, max_texts),
        max_chars=max_chars,
        max_seconds=max_seconds,
        allowed=tuple(name.lower() for name in allow_host or ()),
        root_path=f"/{root_path.strip('/')}".rstrip("/"),
    )
    plan = ServerPlan(
        models or [],
        settings,
        host,
        port,
        gold,
        about,
        review,
        component,
        train,
        gpu_id,
        threads,
        confidence,
    )
    run(plan, typer.echo, partial(typer.echo, err=True))
