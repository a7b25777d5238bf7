"""`spacy-psa search`: finds the best settings of a config with Optuna."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from spacy_psa.cli.options import Address, Gpu, Jobs, TrainingEngine
from spacy_psa.errors import InputError


def search(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.cfg", help="Training config.")],
    space: Annotated[
        Path,
        typer.Argument(metavar="SPACE.toml", help="Settings to search, and their possible values."),
    ],
    output: Annotated[Path, typer.Option(help="File for the best config.")] = Path("best.cfg"),
    trials: Annotated[int, typer.Option(min=1, help="Number of trainings in all.")] = 20,
    storage: Annotated[
        str | None,
        typer.Option(
            help="SQLite file of the search, or a NAME.journal, or the URL of a database; "
            "default: OUTPUT.db, or OUTPUT.journal for several trainings at a time."
        ),
    ] = None,
    sampler: Annotated[
        Literal["tpe", "random"], typer.Option(help="How values are drawn.")
    ] = "tpe",
    seed: Annotated[
        int, typer.Option(help="Seed of the draws; the trainings use --system.seed.")
    ] = 0,
    startup: Annotated[
        int, typer.Option(min=1, help="Number of complete trainings before any is ended early.")
    ] = 5,
    gpu_id: Gpu = -1,
    jobs: Jobs = 1,
    engine: TrainingEngine = "local",
    address: Address = None,
) -> None:
    """Search for the settings with the best dev score.

    Trains CONFIG.cfg, as `spacy train` does, with values that are drawn from SPACE.toml. Further
    options override settings: --paths.train corpus/train.spacy and so on. A training is ended early
    if its best score is below the median of the other trainings' scores at the same evaluation.

    The best config so far is written to OUTPUT after each trial that improves on it. If the search
    is interrupted, the same command continues it. Search spaces of the TENER paper are in
    configs/search.

    With --jobs, several trainings run at a time, each in a process of one thread; with --engine
    ray on the machines of a cluster, which need a shared folder. Processes also search together if
    they run the same command: on one machine or a shared folder with --storage NAME.journal,
    elsewhere with the URL of a database. --trials counts the trainings of all.

    \b
    Example:
      spacy-psa search configs/ner/tener.cfg configs/search/transformer_en.toml \\
          --trials 20 --paths.train train.spacy --paths.dev dev.spacy
    """
    try:
        from spacy_psa.laboratory.search import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "optuna":
            raise
        raise InputError(
            "spacy-psa search needs Optuna: pip install 'spacy-psa[search]'"
        ) from error

    files, ray = (str(config), ctx.args, str(space), str(output)), engine == "ray"
    plan = run.SearchPlan(*files, trials, storage, sampler, seed, startup, gpu_id)
    with _progress(trials) as (advance, watch):
        run.search(plan, typer.echo, ray, jobs, address, advance, watch)


@contextmanager
def _progress(total: int) -> Iterator[tuple[Callable[[int], None], Callable[[int, float], None]]]:
    """Show a bar over trials on a terminal, with the evaluations of the current one."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("search", total=total)

        def advance(done: int) -> None:
            progress.update(task, completed=done, description="search")

        def watch(evaluation: int, score: float) -> None:
            progress.update(task, description=f"evaluation {evaluation}: {100 * score:.2f}")

        yield advance, watch
