"""The figures of a corpus check as tables, and a line for each mistake."""

from collections.abc import Iterator
from typing import Any

LONG = 8
"""Spans of this length and longer are one row."""
MOST_ROWS = 60
"""The number of labels that a table shows; the JSON has all."""


def print_check(figures: dict[str, Any]) -> None:
    """Print the figures of `check_corpus`, and then what is to be looked at."""
    from rich.console import Console

    parts = list(figures["parts"])
    console = Console()
    sizes = figures["parts"]
    rows = [[what, *(f"{sizes[part][what]:,}" for part in parts)] for what in sizes[parts[0]]]
    duplicates = figures["duplicates"]
    for what in dict.fromkeys(what for part in parts for what in duplicates[part]):
        cells = (duplicates[part].get(what) for part in parts)
        rows.append([f"duplicates {what}", *("" if n is None else f"{n:,}" for n in cells)])
    if figures["without_vector"] is not None:
        shares = figures["without_vector"]
        rows.append(["words without vector", *(f"{100 * shares[part]:.1f}%" for part in parts)])
    console.print(_table(["", *parts], rows))
    for name, layer in figures["layers"].items():
        labels = layer["labels"]
        rows = [[label, *(f"{labels[label][part]:,}" for part in parts)] for label in labels]
        if len(rows) > MOST_ROWS:
            rows = [*rows[:MOST_ROWS], [f"and {len(rows) - MOST_ROWS:,} more", *[""] * len(parts)]]
        console.print(_table([name, *parts], rows))
        if "lengths" in layer and name != "constituents":
            console.print(_table(["tokens", name], list(_lengths(layer["lengths"]))))
    for line in findings(figures):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def findings(figures: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each thing that may be a mistake, with what it does to a training."""
    first, *others = figures["parts"]
    for name, layer in figures["layers"].items():
        if layer["rare"]:
            yield f"{name}: fewer than 10 in {first}, hard to learn: {', '.join(layer['rare'])}"
        if unseen := layer[f"not in {first}"]:
            yield f"{name}: not in {first}, cannot be learned: {', '.join(unseen)}"
        across = layer.get("across_sentences", {})
        for part in figures["parts"]:
            if across.get(part):
                trees = name == "constituents"
                then = "is not possible before they are corrected" if trees else "leaves them out"
                examples = [text for text in across["examples"] if text.startswith(f"{part}: ")]
                yield (
                    f"{name}: {across[part]:,} in {part} go over the bounds of sentences; training "
                    f"{then}: {'; '.join(examples)}"
                )
        for part, count in layer["without_annotation"].items():
            if count:
                yield f"{name}: {count:,} document(s) of {part} without annotation"
    for part in others:
        if count := figures["duplicates"][part][f"in {first}"]:
            share = 100 * count / figures["parts"][part]["documents"]
            yield (
                f"{part}: {count:,} sentences ({share:.1f}%) are in {first}, too; scores on them "
                "say little of new text"
            )


def _lengths(counts: dict[str, int]) -> Iterator[list[str]]:
    for length in range(1, LONG):
        if str(length) in counts:
            yield [str(length), f"{counts[str(length)]:,}"]
    long = sum(count for length, count in counts.items() if int(length) >= LONG)
    if long:
        yield [f"{LONG} or more, up to {max(map(int, counts))}", f"{long:,}"]


def _table(heads: list[str], rows: list[list[str]]) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, pad_edge=False)
    for i, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if i else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
