"""How commands print: tables, messages, and the progress over a stream."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import typer

Item = TypeVar("Item")


def print_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1, lines: bool = True
) -> None:
    """Print a table; the first columns, `left` of them, begin at the left.

    Without `lines` there is only a line below the heads.
    """
    from rich.box import HEAVY_HEAD, SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=HEAVY_HEAD if lines else SIMPLE, pad_edge=lines)
    for i, head in enumerate(heads):
        table.add_column(Text(head), justify="left" if i < left else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def print_markdown(text: str) -> None:
    """Print Markdown as Rich shows it."""
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))


def tell(messages: Iterable[str], warnings: Iterable[str] = ()) -> None:
    """Print messages, and warnings on stderr."""
    for message in messages:
        typer.echo(message)
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)


def is_right(question: str) -> bool:
    """Ask a question on a terminal; without a terminal, the answer is yes."""
    return not (sys.stdin.isatty() and sys.stdout.isatty()) or typer.confirm(question, default=True)


def watched(items: Iterator[Item], what: str) -> Iterator[Item]:
    """Pass the items on and, on a terminal, show how many there were."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    if not sys.stderr.isatty():
        yield from items
        return
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,.0f}"))
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        yield from progress.track(items, description=what)
