"""What `annotate` says on stderr: a bar while it works, and a line at the end."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer


@contextmanager
def progress() -> Iterator[tuple[Callable[[int, int | None, int], None], Callable[[str], None]]]:
    """Give `advance(position, total, words)` and `say(line)`; a terminal gets a bar."""
    import sys

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    if not sys.stderr.isatty():
        yield (lambda position, total, words: None), (lambda line: typer.echo(line, err=True))
        return
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[words]:,} words"),
        BarColumn(),
        TextColumn("{task.fields[speed]:,.0f} words/s"),
        TimeElapsedColumn(),
    )
    # No thread refreshes the bar: `advance` does.
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=None, words=0, speed=0.0)
        started = shown = time.perf_counter()

        def advance(position: int, total: int | None, words: int) -> None:
            nonlocal shown
            now = time.perf_counter()
            if now - shown > 0.1:
                shown = now
                speed = words / (now - started)
                bar.update(task, completed=position, total=total, words=words, speed=speed)
                bar.refresh()

        def say(line: str) -> None:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

        yield advance, say


def summary(counts: Counter[str], seconds: float) -> str:
    """Say on one line how many documents were annotated, and how fast.

    Args:
        counts: the numbers of docs, words, failed docs, bad lines and kept shards.
        seconds: the seconds that it took.
    """
    parts = [
        f"{counts['docs']:,} docs",
        f"{counts['words']:,} words",
        f"{seconds:.1f} s",
        f"{counts['words'] / seconds:,.0f} words/s",
    ]
    if counts["failed"]:
        parts.append(f"{counts['failed']:,} failed")
    if counts["bad"]:
        parts.append(f"{counts['bad']:,} malformed lines skipped")
    if counts["kept"]:
        parts.append(f"{counts['kept']:,} finished shards kept")
    return ", ".join(parts)
