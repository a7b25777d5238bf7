"""The command line of the scripts."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any


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
