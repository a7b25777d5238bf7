"""`spacy-psa search`: the best settings of a config, by Optuna."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial
    from thinc.api import Config


class SamplerChoice(str, Enum):
    """How combinations are drawn."""

    tpe = "tpe"
    random = "random"


def search(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.cfg", help="For `spacy train`.")],
    space: Annotated[
        Path, typer.Argument(metavar="SPACE.toml", help="Settings and the values they may take.")
    ],
    output: Annotated[Path, typer.Option(help="Write the best config here.")] = Path("best.cfg"),
    trials: Annotated[int, typer.Option(min=1, help="Combinations in all.")] = 20,
    storage: Annotated[
        Path | None, typer.Option(help="SQLite file of the search; OUTPUT.db if not given.")
    ] = None,
    sampler: Annotated[SamplerChoice, typer.Option(help="How they are drawn.")] = SamplerChoice.tpe,
    seed: Annotated[int, typer.Option(help="Of the draws; --system.seed is the trainings'.")] = 0,
    startup: Annotated[
        int, typer.Option(min=1, help="Trainings to their end before any is pruned.")
    ] = 5,
    gpu_id: Annotated[int, typer.Option(min=-1, help="GPU, -1 for the CPU.")] = -1,
) -> None:
    """Search for the settings of CONFIG with the best dev score, as `spacy train` trains it.

    Further options override settings: --paths.train corpus/train.spacy and so on. A
    training whose best score is below the median of the others' at the same evaluation is
    pruned. The same command goes on with a search that was interrupted. The best config is
    written after each trial that improves on it. Spaces of the TENER paper are in
    configs/search.
    """
    from spacy_psa.loading import use_device
    from spacy_psa.search.space import check_names, read_space

    try:
        from spacy_psa.search.study import Search
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise InputError(
            "spacy-psa search needs Optuna: pip install 'spacy-psa[search]'"
        ) from error

    settings = _load(config, context.args)
    found = read_space(space)
    check_names(found, settings, space)
    use_device(gpu_id)
    held = storage or output.with_name(f"{output.name}.db")
    run = Search(settings, found, held, sampler.value, seed, startup, gpu_id)
    with _progress(trials) as (advance, watch):
        advance(run.done)
        while run.done < trials:
            before = run.best
            trial = run.step(watch)
            advance(run.done)
            typer.echo(_line(trial))
            if run.best is not None and run.best != before:
                _write(run.settled(run.best.params), output)
    best = run.best
    if best is None:
        raise InputError(f"{held}: no training came to its end; give more --trials")
    _write(run.settled(best.params), output)
    typer.echo(f"Best of {run.done}: {_line(best)}\nWritten: {output}")


def _load(path: Path, arguments: list[str]) -> "Config":
    from configparser import Error

    from spacy.cli._util import parse_config_overrides
    from spacy.util import load_config
    from thinc.api import ConfigValidationError

    if not path.is_file():
        raise InputError(f"{path}: there is no such config")
    if arguments and not arguments[0].startswith("--"):
        raise InputError(
            f"{arguments[0]}: an argument too many; overrides are --SECTION.NAME VALUE"
        )
    try:
        return load_config(path, parse_config_overrides(arguments), interpolate=False)
    except (ConfigValidationError, Error, ValueError) as error:
        raise InputError(
            f"{path}: not a config, or an override of what it lacks ({error})"
        ) from error


def _write(config: "Config", path: Path) -> None:
    from spacy_psa.corpora.atomic import atomic_path

    with atomic_path(path) as temporary:
        config.to_disk(temporary, interpolate=False)


def _line(trial: "FrozenTrial") -> str:
    """A trial in words: its score, or what became of it."""
    state = trial.state.name.lower()
    score = "" if trial.value is None else f" {100 * trial.value:.2f}"
    values = ", ".join(f"{name} = {value}" for name, value in trial.params.items())
    reason = f": {trial.user_attrs['error']}" if "error" in trial.user_attrs else ""
    return f"trial {trial.number}: {state}{score}; {values}{reason}"


@contextmanager
def _progress(total: int) -> Iterator[tuple[Callable[[int], None], Callable[[int, float], None]]]:
    """A bar over trials, on a terminal, that also tells the evaluations of the present one."""
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
