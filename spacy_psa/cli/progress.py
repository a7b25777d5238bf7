"""The messages of commands that annotate: a bar while they work, and a line at the end."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from spacy_psa.annotation.run import NothingAnnotated, Run, Summary, Watch

if TYPE_CHECKING:
    from rich.progress import Progress


def annotating(work: Callable[[Run], Summary], **settings: Any) -> None:
    """Call a function that annotates, and show how far it is and what it has done, on stderr.

    `settings` are those of `Run`. The command exits with code 1 if no document was annotated.
    """
    try:
        with _watch() as watch:
            summary = work(Run(watch, **settings))
    except NothingAnnotated as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    if summary.replaced:
        names = ", ".join(sorted(summary.replaced))
        typer.echo(f"warning: the annotation replaces keys of the input: {names}", err=True)
    typer.echo(str(summary), err=True)


class _Lines(Watch):
    """Prints messages on stderr."""

    def say(self, line: str) -> None:
        typer.echo(line, err=True)


class _Bar(Watch):
    """Shows a bar over the input with the speed."""

    def __init__(self, bar: "Progress") -> None:
        self.bar = bar
        self.task = bar.add_task("", total=None, words=0, speed=0.0)
        self.started: float | None = None
        self.shown = 0.0

    def advance(self, position: int, total: int | None, words: int) -> None:
        now = time.perf_counter()
        self.started = self.started or now
        if words and now - self.shown > 0.1:
            self.shown = now
            speed = words / (now - self.started)
            self.bar.update(self.task, completed=position, total=total, words=words, speed=speed)
            self.bar.refresh()

    def say(self, line: str) -> None:
        self.bar.console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _watch() -> Iterator[Watch]:
    """Yield a bar if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[words]:,} words"),
        BarColumn(),
        TextColumn("{task.fields[speed]:,.0f} words/s"),
        TimeElapsedColumn(),
    )
    # No thread refreshes the bar: `advance` does.
    console = Console(stderr=True)
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        yield _Bar(bar)
