"""The command line of the scripts, also of those that draw pictures."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any, cast

from benchmarks.record import FOLDER

PICTURES = FOLDER.parent / "docs" / "pictures"


def script_parser(script: dict[str, Any], *arguments: str) -> ArgumentParser:
    """The parser of a script, whose help shows the docstring of its module.

    Args:
        script: the `globals()` of the module.
        arguments: the first arguments, such as "DATA.spacy", which becomes the path `data`. "MODEL"
            is a string, for `spacy.load`.
    """
    parser = ArgumentParser(
        prog=f"python -m {script['__spec__'].name}",
        description=script["__doc__"],
        formatter_class=RawDescriptionHelpFormatter,
    )
    for name in arguments:
        kind = str if name == "MODEL" else Path
        parser.add_argument(name.partition(".")[0].lower(), type=kind, metavar=name)
    return parser


BOTH_MODES = {
    "savefig.transparent": True,
    "svg.fonttype": "none",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#768390"
    ),
    "grid.color": "#768390",
}
"""Settings of matplotlib for a picture that can be read on white and on black."""


def picture_path(script: dict[str, Any], default: str) -> Path:
    """The file that the command line of a script names, or else a file in docs/pictures.

    It is drawn for light and dark pages.
    """
    import matplotlib

    matplotlib.rcParams.update(cast(Any, BOTH_MODES))
    options = script_parser(script)
    options.add_argument("target", nargs="?", type=Path, default=PICTURES / default)
    target: Path = options.parse_args().target
    return target


def lighten(axes: Any) -> None:
    """Draw a light grid in a panel of matplotlib, and no line at its top and right."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
