"""The groups of `spacy-psa --help`, and the form of the lists in which wings name commands."""

from collections.abc import Callable
from typing import TypeAlias

import typer

YOUR_DATA, USE, RESEARCH = "Your data", "Use", "Research"

Commands: TypeAlias = "list[tuple[str, list[typer.Typer | Callable[..., None]]]]"
"""Commands, or apps with several, by their group; one with a `ctx` reads further options."""
