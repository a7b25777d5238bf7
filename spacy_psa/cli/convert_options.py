"""What the commands of `spacy-psa convert` share: arguments, and how they write documents."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

Item = TypeVar("Item")

Source = Annotated[Path, typer.Argument(metavar="IN", help="File to read, plain or .gz.")]
Target = Annotated[Path, typer.Argument(metavar="OUT.spacy", help="File to write.")]
Lang = Annotated[str, typer.Option(help="Language code of the documents, as for spacy.blank.")]
Documents = Annotated[
    bool,
    typer.Option("--documents", help="Write one Doc for each document, with its sentences."),
]
Collection = Annotated[
    Path, typer.Argument(metavar="IN", help="Folder, archive (.zip, .tar.xz) or file to read.")
]
Sections = Annotated[
    str,
    typer.Option(
        help="Sections of the Wall Street Journal to keep (02-21 or 22,24); default: all."
    ),
]


class QuoteChoice(str, Enum):
    """The quotation marks of the documents."""

    treebank = "treebank"
    straight = "straight"
    curly = "curly"
    mixed = "mixed"


Marks = Annotated[
    QuoteChoice,
    typer.Option(help="Quotation marks: as in the treebank, as in text, or all in turn (mixed)."),
]
Spaces = Annotated[
    bool, typer.Option("--spaces", help="Find out the spaces between words by rules.")
]


def vocab_of(lang: str) -> "Vocab":
    """Give the vocabulary of a language.

    Raises:
        InputError: if spaCy has no such language.
    """
    import spacy

    try:
        return spacy.blank(lang).vocab
    except ImportError as error:
        raise InputError(
            f"--lang {lang}: spaCy has no such language, or it needs a package "
            "that is not installed"
        ) from error


def write_docs(source: Path, target: Path, docs: Iterable["Doc"], repairs: Counter[str]) -> None:
    """Write the docs, then report what was read and what was repaired."""
    from spacy_psa.corpora.docbin import write_docbin
    from spacy_psa.corpora.lines import describe, describe_repairs
    from spacy_psa.sentences import sentence_bounds

    counts: Counter[str] = Counter()

    def counted() -> Iterator["Doc"]:
        for doc in docs:
            counts["sentences"] += len(sentence_bounds(doc))
            counts["tokens"] += len(doc)
            if doc.has_annotation("ENT_IOB"):
                counts["entities"] += len(doc.ents)
            for name, spans in doc.spans.items():
                counts[name] += len(spans)
            yield doc
        if repairs and not counts["tokens"]:
            raise InputError(f"{source}: nothing is left to write: {describe(repairs)}")

    write_docbin(watched(counted(), "sentences"), target)
    if repairs:
        typer.echo(f"warning: {describe_repairs(source, repairs)}", err=True)
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    typer.echo(f"{source} -> {target}: {told}")


def watched(items: Iterable[Item], what: str) -> Iterator[Item]:
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
