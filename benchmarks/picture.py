"""The pictures of the experiments: a light grid and a command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.record import FOLDER
from benchmarks.script import script_parser

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURES = FOLDER.parent / "docs" / "pictures"


def lighten(axes: "Axes") -> None:
    """Draw a light grid in a panel, and no line at its top and right."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def picture_path(script: dict[str, Any], default: str) -> Path:
    """The file that the command line of a script names, or else a file in docs/pictures."""
    options = script_parser(script)
    options.add_argument("target", nargs="?", type=Path, default=PICTURES / default)
    target: Path = options.parse_args().target
    return target
