"""`spacy-psa experiment`: plans of trainings, with tables and pictures of their results."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spacy_psa.cli.options import Address, Gpu, Jobs, TrainingEngine
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy_psa.laboratory.experiments.record import Record
    from spacy_psa.laboratory.experiments.runner import Job

experiment_app = typer.Typer(
    name="experiment",
    help="Run plans of trainings, and compare their results.",
    no_args_is_help=True,
)

Folders = Annotated[
    list[Path], typer.Argument(metavar="FOLDER...", help="Folders with results of `run`.")
]


@experiment_app.command()
def run(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="Runs, with their seeds.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for all results; default: experiments/PLAN.")
    ] = None,
    jobs: Jobs = 1,
    engine: TrainingEngine = "local",
    address: Address = None,
    save_every: Annotated[
        int, typer.Option(min=0, help="Steps between further checkpoints; 0: only at evaluations.")
    ] = 0,
    gpu_id: Gpu = -1,
) -> None:
    """Train every run of a plan with every seed, as `train` does, and record the scores.

    PLAN.toml names runs; each is a config with layers and settings over it. Each training has a
    process of one thread, a folder OUT/RUN/seed-N and a record in it, record.json, with its scores,
    its config and its provenance. Development data is always scored, the test corpus only in
    runs that are final.

    A training with a record is left out, unless its config, seed or data have changed. If the
    command is interrupted, the same command continues from the checkpoints. A training that fails
    is recorded with its reason and does not end the others; then the exit code is 1, and the same
    command tries it again.

    \b
    Example:
      spacy-psa experiment run configs/experiments/sample.toml --jobs 2
      spacy-psa experiment table experiments/sample
    """
    from spacy_psa.laboratory.experiments.plan import read_plan
    from spacy_psa.laboratory.experiments.processes import make_engine
    from spacy_psa.laboratory.experiments.runner import run_plan

    starter = make_engine(engine == "ray", jobs, address, [str(gpu_id), str(save_every)])
    read = read_plan(plan)
    folder = out or Path("experiments", read.name)
    if run_plan(read, folder, starter, typer.echo, _progress):
        raise typer.Exit(1)


@experiment_app.command()
def table(
    folders: Folders,
    compare: Annotated[
        tuple[str, str] | None, typer.Option(help="Two runs whose difference is tested.")
    ] = None,
    form: Annotated[
        Literal["markdown", "csv"], typer.Option("--format", help="Format of the table.")
    ] = "markdown",
    resamples: Annotated[
        int, typer.Option(min=100, help="Number of draws for intervals and tests.")
    ] = 10_000,
) -> None:
    """Print the scores of all runs, from their records.

    Each run has a row: the mean of its seeds and their standard deviation on development data and,
    if the run was final, on test data. The interval is a 95% bootstrap interval of the mean over
    sentences of the test data, or of the development data where there was no test.

    With --compare A B the difference of two runs is tested: by a paired bootstrap and a paired
    permutation test over sentences, and by a permutation test over seeds.

    \b
    Example:
      spacy-psa experiment table experiments/sample --compare psa bilstm_crf
    """
    from spacy_psa.laboratory.experiments import tables
    from spacy_psa.laboratory.experiments.record import by_run, find_records

    runs = by_run(find_records(folders))
    if form == "csv":
        if compare is not None:
            raise InputError("--compare: needs --format markdown; leave one of the two out")
        typer.echo(tables.csv_text(tables.rows(runs, resamples)), nl=False)
        return
    compared = tables.comparison(runs, *compare, resamples) if compare else None
    typer.echo(tables.markdown(tables.rows(runs, resamples)))
    for line in tables.unfinished(runs):
        typer.echo(f"\n{line}")
    if compared is not None:
        typer.echo(f"\n{compared}")


@experiment_app.command()
def plot(
    folders: Folders,
    target: Annotated[
        Path, typer.Argument(metavar="OUT.svg|.png", help="Picture; its ending chooses the format.")
    ],
) -> None:
    """Draw the development scores of all runs against epochs, from their records.

    A thin line is a seed, a thick one the mean of the seeds as far as all have come, and the band
    their standard deviation.

    \b
    Example:
      spacy-psa experiment plot experiments/sample dev.svg
    """
    from spacy_psa.laboratory.experiments.record import by_run, find_records
    from spacy_psa.laboratory.experiments.tables import draw

    draw(by_run(find_records(folders)), target)
    typer.echo(f"Written: {target}")


def _print(records: "list[Record]") -> None:
    for record in records:
        typer.echo(record.summary)


@contextmanager
def _progress(jobs: "Sequence[Job]") -> "Iterator[Callable[[list[Record]], None]]":
    """Yield a function that prints the trainings that have ended.

    On a terminal there is a bar over all trainings with the time left, and a line for each that is
    under way.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _print
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    period = 1e9  # seconds whose mean speed is shown: all
    with Progress(*columns, console=console, transient=True, speed_estimate_period=period) as bar:
        whole = bar.add_task(f"{len(jobs)} trainings", total=float(len(jobs)))
        under_way = {job.record.name: job for job in jobs}
        lines = {name: bar.add_task(name, total=1.0, visible=False) for name in under_way}

        def show(records: "list[Record]") -> None:
            for record in records:
                console.print(record.summary, markup=False, highlight=False, soft_wrap=True)
                del under_way[record.name]
                bar.remove_task(lines[record.name])
            shares = {name: job.progress for name, job in under_way.items()}
            bar.update(whole, completed=len(jobs) - len(under_way) + sum(shares.values()))
            for name, job in under_way.items():
                last = job.last
                if last is not None:
                    line = f"{name}, epoch {last['epoch']}: {100 * last['score']:.2f}"
                    bar.update(lines[name], completed=shares[name], description=line, visible=True)

        yield show
