"""The command line of the scripts."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path


def script_parser(module: str, doc: str | None, *paths: str) -> ArgumentParser:
    """The parser of a script, whose help shows the docstring of its module.

    Args:
        module: the script.
        doc: the docstring.
        paths: the first arguments, such as "DATA.spacy", which becomes the path `data`.
    """
    parser = ArgumentParser(
        prog=f"python -m {module}", description=doc, formatter_class=RawDescriptionHelpFormatter
    )
    for path in paths:
        parser.add_argument(path.partition(".")[0].lower(), type=Path, metavar=path)
    return parser
