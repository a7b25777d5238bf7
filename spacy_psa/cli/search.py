"""`spacy-psa search`: finds the best settings of a config with Optuna."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.cli.engines import Address, Engine, Jobs, TrainingEngine, at_a_time, make_starter
from spacy_psa.errors import InputError
from spacy_psa.training.config import read_training_config

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial
    from thinc.api import Config

    from spacy_psa.laboratory.experiments.runner import Engine as Starter
    from spacy_psa.laboratory.search.study import Search


class SamplerChoice(str, Enum):
    """How combinations of settings are drawn."""

    tpe = "tpe"
    random = "random"


def search(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.cfg", help="Training config.")],
    space: Annotated[
        Path,
        typer.Argument(
            metavar="SPACE.toml", help="Settings to search, and the values that they may take."
        ),
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
        SamplerChoice, typer.Option(help="How values are drawn.")
    ] = SamplerChoice.tpe,
    seed: Annotated[
        int, typer.Option(help="Seed of the draws; the trainings use --system.seed.")
    ] = 0,
    startup: Annotated[
        int, typer.Option(min=1, help="Number of complete trainings before any is ended early.")
    ] = 5,
    gpu_id: Annotated[int, typer.Option(min=-1, help="Number of the GPU; -1 for the CPU.")] = -1,
    jobs: Jobs = 1,
    engine: TrainingEngine = Engine.local,
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
    from spacy_psa.laboratory.search.space import check_names, read_space
    from spacy_psa.loading import use_device

    try:
        from spacy_psa.laboratory.search.study import Search
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise InputError(
            "spacy-psa search needs Optuna: pip install 'spacy-psa[search]'"
        ) from error

    if output.is_dir():
        raise InputError(f"--output {output}: is a folder; give the name of a file")
    several = engine is Engine.ray or jobs != 1
    held = storage or str(output.with_name(f"{output.name}.{'journal' if several else 'db'}"))
    if engine is Engine.ray and not ("://" in held or held.endswith(".journal")):
        raise InputError(
            f"--storage {held}: machines cannot share it; give NAME.journal, or the URL of a "
            "database"
        )
    words = [*map(str, (config, space, "--output", output, "--trials", trials, "--storage", held))]
    words += ["--sampler", sampler.value, "--seed", str(seed), "--startup", str(startup)]
    words += ["--gpu-id", str(gpu_id), *context.args]
    starter = make_starter(engine, jobs, address, words, "spacy_psa.cli.search_worker")
    if address is not None:
        from spacy_psa.cluster import check_address

        check_address(address)
    settings = read_training_config(config, context.args)
    found = read_space(space)
    check_names(found, settings, space)
    use_device(gpu_id)
    run = Search(settings, found, held, sampler.value, seed, startup, gpu_id)
    with _progress(trials) as (advance, watch):
        advance(run.done)
        before = run.best
        if several:
            left = trials - run.begun
            most = at_a_time(engine, jobs)
            folders = _folders(output, left if most < 0 else min(most, left))
            _search_together(run, starter, folders, advance)
        # What processes left that were killed is trained here.
        while (trial := run.step(watch, limit=trials)) is not None:
            advance(run.done)
            typer.echo(_line(trial))
            if run.best is not None and run.best != before:
                _write(run.settled(run.best.params), output)
            before = run.best
    best = run.best
    under_way = run.begun - run.done
    if best is None and not under_way:
        raise InputError(f"{held}: no training was completed; give more --trials")
    if under_way:
        typer.echo(f"{under_way} training(s) of other processes are still under way")
    if best is None:
        return
    _write(run.settled(best.params), output)
    typer.echo(f"Best of {run.done}: {_line(best)}\nWritten: {output}")


def _folders(output: Path, count: int) -> list[Path]:
    """Make a folder for each process; it has what the process prints."""
    folders = [output.with_name(f"{output.name}.jobs") / str(i + 1) for i in range(count)]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def _search_together(
    run: "Search", starter: "Starter", folders: list[Path], advance: Callable[[int], None]
) -> None:
    """Search in several processes, and tell each trial that ends."""
    told = {trial.number for trial in run.ended}
    with closing(starter(folders)) as rounds:
        for _ in rounds:
            for trial in run.ended:
                if trial.number not in told:
                    told.add(trial.number)
                    typer.echo(_line(trial))
            advance(run.done)


def _write(config: "Config", path: Path) -> None:
    from spacy_psa.corpora.atomic import atomic_path

    with atomic_path(path) as temporary:
        config.to_disk(temporary, interpolate=False)


def _line(trial: "FrozenTrial") -> str:
    """Describe a trial: its score or state, and its values."""
    state = trial.state.name.lower()
    score = "" if trial.value is None else f" {100 * trial.value:.2f}"
    values = ", ".join(f"{name} = {value}" for name, value in trial.params.items())
    reason = f": {trial.user_attrs['error']}" if "error" in trial.user_attrs else ""
    return f"trial {trial.number}: {state}{score}; {values}{reason}"


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
            told = f"evaluation {evaluation}: {100 * score:.2f}"
            progress.update(task, description=told)

        yield advance, watch
