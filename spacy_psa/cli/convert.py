"""`spacy-psa convert`: published corpora and vectors to what spaCy trains from."""

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

convert_app = typer.Typer(
    name="convert",
    help="Convert corpora and vectors to what spaCy trains from.",
    no_args_is_help=True,
)

Item = TypeVar("Item")


class SchemeChoice(str, Enum):
    """How the entity column is tagged."""

    auto = "auto"
    iob1 = "iob1"
    iob2 = "iob2"
    bioes = "bioes"


class Part(str, Enum):
    """What to keep of a file from which a development set is drawn."""

    train = "train"
    dev = "dev"


Source = Annotated[Path, typer.Argument(metavar="IN", help="The file to read; may be .gz.")]
Target = Annotated[Path, typer.Argument(metavar="OUT.spacy", help="The file to write.")]
Lang = Annotated[str, typer.Option(help="Language code of the documents, as in spacy.blank.")]
Collection = Annotated[
    Path, typer.Argument(metavar="IN", help="A folder, archive (.zip, .tar.xz) or file.")
]
Sections = Annotated[
    str, typer.Option(help="Only these sections of the Wall Street Journal, as 02-21 or 22,24.")
]


@convert_app.command()
def conll2003(
    source: Source,
    target: Target,
    scheme: Annotated[
        SchemeChoice, typer.Option(help="Tag scheme of the entity column; auto finds it.")
    ] = SchemeChoice.auto,
    lang: Lang = "en",
) -> None:
    """CoNLL-2003 columns: word, part of speech, chunk, entity; one sentence a document."""
    from spacy_psa.corpora.conll import read_docs, resolve_scheme
    from spacy_psa.corpora.docbin import check_docbin_path

    check_docbin_path(target)
    found = resolve_scheme(source, scheme.value)
    if scheme is SchemeChoice.auto:
        typer.echo(f"{source}: entity column is {found.upper()}")
    repairs: Counter[str] = Counter()
    docs = read_docs(source, _vocab(lang), found, repairs)
    _convert(source, target, docs, repairs)


@convert_app.command()
def conll2000(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file, or conll2000.zip.")],
    target: Target,
    member: Annotated[
        str | None, typer.Option(help="File inside the .zip: train.txt or test.txt.")
    ] = None,
    dev: Annotated[
        int, typer.Option(min=0, help="Draw so many sentences at random as a development set.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Another seed draws others.")] = 0,
    part: Annotated[
        Part, typer.Option(help="With --dev: write the drawn sentences (dev) or the rest (train).")
    ] = Part.train,
    lang: Lang = "en",
) -> None:
    """CoNLL-2000 columns: word, part of speech, chunk; one sentence a document."""
    from spacy_psa.corpora.conll2000 import read_docs
    from spacy_psa.corpora.docbin import check_docbin_path

    check_docbin_path(target)
    repairs: Counter[str] = Counter()
    docs = read_docs(source, _vocab(lang), repairs, member, dev, seed, part.value)
    _convert(source, target, docs, repairs)


@convert_app.command()
def ontonotes(
    source: Collection,
    target: Target,
    folder: Annotated[
        str, typer.Option(help="Only files below this folder in IN, as v4/data/train.")
    ] = "",
    sections: Sections = "",
    new_testament: Annotated[
        bool, typer.Option("--new-testament", help="Also the New Testament, which has no names.")
    ] = False,
    lang: Lang = "en",
) -> None:
    """OntoNotes 5 in CoNLL-2012's *_conll files: parts of speech, names and trees."""
    from spacy_psa.corpora.docbin import check_docbin_path
    from spacy_psa.corpora.ontonotes import read_docs
    from spacy_psa.corpora.sections import parse_sections

    check_docbin_path(target)
    chosen = parse_sections(sections) if sections else None
    repairs: Counter[str] = Counter()
    docs = read_docs(source, _vocab(lang), repairs, folder, chosen, new_testament)
    _convert(source, target, docs, repairs)


@convert_app.command()
def ptb(source: Collection, target: Target, sections: Sections = "", lang: Lang = "en") -> None:
    """The Penn Treebank's .mrg files, without empty elements and function tags."""
    from spacy_psa.corpora.docbin import check_docbin_path
    from spacy_psa.corpora.ptb import read_docs
    from spacy_psa.corpora.sections import parse_sections

    check_docbin_path(target)
    chosen = parse_sections(sections) if sections else None
    repairs: Counter[str] = Counter()
    _convert(source, target, read_docs(source, _vocab(lang), repairs, chosen), repairs)


@convert_app.command()
def brackets(source: Source, target: Target, lang: Lang = "en") -> None:
    """A bracketed tree a line, labels as they stand; one sentence a document."""
    from spacy_psa.corpora.docbin import check_docbin_path
    from spacy_psa.corpora.ptb import read_bracket_docs

    check_docbin_path(target)
    repairs: Counter[str] = Counter()
    _convert(source, target, read_bracket_docs(source, _vocab(lang), repairs), repairs)


@convert_app.command()
def bmes(
    source: Source,
    target: Target,
    scheme: Annotated[
        SchemeChoice, typer.Option(help="Tag scheme; BMES is bioes, auto finds it.")
    ] = SchemeChoice.auto,
    join_types: Annotated[
        bool, typer.Option("--join-types", help="Make one type of PER.NAM and PER.NOM, and so on.")
    ] = False,
    lang: Lang = "zh",
) -> None:
    """Chinese names, a character and its tag a line (Resume, Weibo); characters are tokens."""
    from spacy_psa.corpora.bmes import read_docs, resolve_format
    from spacy_psa.corpora.docbin import check_docbin_path

    check_docbin_path(target)
    written = resolve_format(source, scheme.value)
    if scheme is SchemeChoice.auto:
        typer.echo(f"{source}: entity column is {written.scheme.upper()}")
    repairs: Counter[str] = Counter()
    docs = read_docs(source, _vocab(lang), written, repairs, join_types)
    _convert(source, target, docs, repairs)


@convert_app.command()
def sample(source: Source, target: Target, lang: Lang = "en") -> None:
    """The sample corpus: JSON lines with words, tags, chunks, entities and trees."""
    from spacy_psa.corpora.docbin import check_docbin_path
    from spacy_psa.corpora.jsonl import read_docs

    check_docbin_path(target)
    repairs: Counter[str] = Counter()
    _convert(source, target, read_docs(source, _vocab(lang), repairs), repairs)


@convert_app.command()
def glove(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="The official .zip, or a .txt or .gz file.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.txt", help="The file to write.")],
    dim: Annotated[int, typer.Option(min=1, help="Numbers a word.")] = 100,
    member: Annotated[
        str | None, typer.Option(help="File inside the .zip; found by --dim if not given.")
    ] = None,
) -> None:
    """GloVe vectors, checked line by line, for `python -m spacy init vectors`."""
    from spacy_psa.corpora.glove import prepare_vectors

    rows = prepare_vectors(source, target, dim, member, watch=_watch)
    typer.echo(f"{source} -> {target}: {rows:,} vectors of {dim} numbers")


def _vocab(lang: str) -> "Vocab":
    import spacy

    try:
        return spacy.blank(lang).vocab
    except ImportError as error:
        raise InputError(
            f"--lang {lang}: spaCy has no such language, or it needs a package "
            "that is not installed"
        ) from error


def _convert(source: Path, target: Path, docs: Iterable["Doc"], repairs: Counter[str]) -> None:
    """Write the docs, then say what was read and what was repaired."""
    from spacy_psa.corpora.docbin import write_docbin
    from spacy_psa.corpora.lines import describe_repairs

    counts: Counter[str] = Counter()

    def counted() -> Iterator["Doc"]:
        for doc in docs:
            counts["sentences"] += 1
            counts["tokens"] += len(doc)
            if doc.has_annotation("ENT_IOB"):
                counts["entities"] += len(doc.ents)
            for name, spans in doc.spans.items():
                counts[name] += len(spans)
            yield doc

    write_docbin(_watch(counted(), "sentences"), target)
    if repairs:
        typer.echo(f"warning: {describe_repairs(source, repairs)}", err=True)
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    typer.echo(f"{source} -> {target}: {told}")


def _watch(items: Iterable[Item], what: str) -> Iterator[Item]:
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
