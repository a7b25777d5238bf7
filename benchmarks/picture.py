"""What the pictures of the experiments have in common: a light grid, and a command line."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.record import FOLDER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURES = FOLDER.parent / "docs" / "pictures"


def lighten(axes: "Axes") -> None:
    """Give a panel a light grid, and no line at its top and right."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def picture_parser(module: str, doc: str | None, target: Path) -> ArgumentParser:
    """Make the parser of a script that draws a picture: its one argument is the file.

    Args:
        module: the name of the script.
        doc: its docstring, which the help shows.
        target: the file, if the command line names no other.
    """
    found = ArgumentParser(
        prog=f"python -m {module}", description=doc, formatter_class=RawDescriptionHelpFormatter
    )
    found.add_argument("target", nargs="?", type=Path, default=target)
    return found
