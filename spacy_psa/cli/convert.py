"""`spacy-psa convert`: published corpora and vectors to the files that spaCy trains from."""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.cli.convert_options import (
    Collection,
    Documents,
    Lang,
    Marks,
    QuoteChoice,
    Sections,
    Source,
    Spaces,
    Target,
    vocab_of,
    watched,
    write_docs,
)
from spacy_psa.cli.convert_trees import brackets, ctb, export, ptb, spmrl
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.tokens import Doc

convert_app = typer.Typer(
    name="convert",
    help="Convert corpora and word vectors for spaCy.",
    no_args_is_help=True,
)


class SchemeChoice(str, Enum):
    """The tag scheme of the entity column."""

    auto = "auto"
    iob1 = "iob1"
    iob2 = "iob2"
    bioes = "bioes"


class Part(str, Enum):
    """The sentences to keep of a file from which a development set is drawn."""

    train = "train"
    dev = "dev"


class DrawnPart(str, Enum):
    """The sentences to keep of a file from which development and test data are drawn."""

    train = "train"
    dev = "dev"
    test = "test"


@convert_app.command()
def conll2003(
    source: Source,
    target: Target,
    scheme: Annotated[
        SchemeChoice, typer.Option(help="Tag scheme of the entity column; auto detects it.")
    ] = SchemeChoice.auto,
    documents: Documents = False,
    lang: Lang = "en",
) -> None:
    """Convert CoNLL-2003 columns to a .spacy file.

    IN has the columns word, part of speech, chunk and entity. OUT.spacy gets one Doc for each
    sentence, with tags, entities and chunks, and the number of its document in
    doc.user_data["document"].

    \b
    Example:
      spacy-psa convert conll2003 eng.train train.spacy
    """
    from spacy_psa.corpora.conll import read_docs, resolve_scheme
    from spacy_psa.corpora.docbin import check_docbin_path

    check_docbin_path(target)
    found = resolve_scheme(source, scheme.value)
    if scheme is SchemeChoice.auto:
        typer.echo(f"{source}: entity column is {found.upper()}")
    repairs: Counter[str] = Counter()
    docs = read_docs(source, vocab_of(lang), found, repairs)
    write_docs(source, target, _whole(source, docs) if documents else docs, repairs)


@convert_app.command()
def columns(
    source: Source,
    target: Target,
    word: Annotated[int, typer.Option(metavar="I", help="Column of the words.")] = 0,
    ner: Annotated[int | None, typer.Option(metavar="I", help="Column of the entities.")] = None,
    tag: Annotated[
        int | None, typer.Option(metavar="I", help="Column of the parts of speech.")
    ] = None,
    chunk: Annotated[int | None, typer.Option(metavar="I", help="Column of the chunks.")] = None,
    scheme: Annotated[
        SchemeChoice, typer.Option(help="Tag scheme of the entity column; auto detects it.")
    ] = SchemeChoice.auto,
    label: Annotated[
        str, typer.Option(help="Label of entities whose tags have none, such as B and I.")
    ] = "",
    draw: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.4, help="Share to draw by document for development, and for test."
        ),
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    part: Annotated[
        DrawnPart, typer.Option(help="With --draw: a drawn part (dev, test) or the rest (train).")
    ] = DrawnPart.train,
    documents: Documents = False,
    lang: Lang = "en",
) -> None:
    """Convert columns in any order to a .spacy file.

    IN has a token on each line, and lines without text between sentences. Columns are counted from
    0, or from the last, which is -1. OUT.spacy gets one Doc for each sentence, with the annotation
    of the columns that are named. If IN has -DOCSTART- lines, the number of the sentence's document
    is in doc.user_data["document"].

    Of a corpus in one file, --draw makes three parts: convert it with --part train, dev and test.

    \b
    Example:
      spacy-psa convert columns train.iob train.spacy --word 0 --ner -1
    """
    from spacy_psa.corpora.any_columns import read_docs, resolve_schemes
    from spacy_psa.corpora.columns import Columns
    from spacy_psa.corpora.docbin import check_docbin_path
    from spacy_psa.corpora.split_parts import drawn_part

    check_docbin_path(target)
    chosen = Columns(word, ner, tag, chunk)
    found = resolve_schemes(source, chosen, scheme.value, label)
    if scheme is SchemeChoice.auto and found.ner:
        typer.echo(f"{source}: entity column is {found.ner.upper()}")
    repairs: Counter[str] = Counter()
    docs: Iterable[Doc] = read_docs(source, vocab_of(lang), chosen, found, repairs)
    if draw:
        docs = drawn_part(docs, draw, seed, part.value)
    elif part is not DrawnPart.train:
        raise InputError(f"--part {part.value} needs a share to draw: give --draw 0.1")
    write_docs(source, target, _whole(source, docs) if documents else docs, repairs)


@convert_app.command()
def conll2000(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File to read, or conll2000.zip.")],
    target: Target,
    member: Annotated[
        str | None, typer.Option(help="File inside the archive: train.txt or test.txt.")
    ] = None,
    dev: Annotated[
        int, typer.Option(min=0, help="Sentences to draw at random for a development set.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    part: Annotated[
        Part, typer.Option(help="With --dev: the drawn sentences (dev) or the others (train).")
    ] = Part.train,
    lang: Lang = "en",
) -> None:
    """Convert CoNLL-2000 columns to a .spacy file.

    IN has the columns word, part of speech and chunk; it is a file or the published archive.
    OUT.spacy gets one document for each sentence, with tags and chunks.

    \b
    Example:
      spacy-psa convert conll2000 conll2000.zip train.spacy \\
          --member train.txt --dev 1000 --part train
    """
    from spacy_psa.corpora.conll2000 import read_docs
    from spacy_psa.corpora.docbin import check_docbin_path

    check_docbin_path(target)
    repairs: Counter[str] = Counter()
    docs = read_docs(source, vocab_of(lang), repairs, member, dev, seed, part.value)
    write_docs(source, target, docs, repairs)


@convert_app.command()
def ontonotes(
    source: Collection,
    target: Target,
    folder: Annotated[
        str, typer.Option(help="Folder inside IN to read (v4/data/train); default: all.")
    ] = "",
    sections: Sections = "",
    new_testament: Annotated[
        bool, typer.Option("--new-testament", help="Keep the New Testament, which has no names.")
    ] = False,
    documents: Documents = False,
    quotes: Marks = QuoteChoice.treebank,
    spaces: Spaces = False,
    lang: Lang = "en",
) -> None:
    """Convert OntoNotes 5 (CoNLL-2012) to a .spacy file.

    IN has *_conll files. OUT.spacy gets one Doc for each sentence, with parts of speech, names and
    constituents. Its document and the part of it are in doc.user_data["document"] and ["part"].

    \b
    Example:
      spacy-psa convert ontonotes conll-2012-en.tar.xz dev.spacy \\
          --folder v4/data/development
    """
    from spacy_psa.corpora.docbin import check_docbin_path
    from spacy_psa.corpora.ontonotes import read_docs
    from spacy_psa.corpora.quotes import as_text
    from spacy_psa.corpora.treebanks import parse_sections

    check_docbin_path(target)
    chosen = parse_sections(sections) if sections else None
    repairs: Counter[str] = Counter()
    docs = read_docs(source, vocab_of(lang), repairs, folder, chosen, new_testament)
    docs = as_text(docs, quotes.value, spaces)
    write_docs(source, target, _whole(source, docs) if documents else docs, repairs)


@convert_app.command()
def bmes(
    source: Source,
    target: Target,
    scheme: Annotated[
        SchemeChoice, typer.Option(help="Tag scheme of the file; BMES is bioes, auto detects it.")
    ] = SchemeChoice.auto,
    join_types: Annotated[
        bool,
        typer.Option("--join-types", help="Join PER.NAM and PER.NOM to the type PER, and so on."),
    ] = False,
    lang: Lang = "zh",
) -> None:
    """Convert Chinese names by character to a .spacy file.

    IN has one character and its tag on each line, as Resume and Weibo do. OUT.spacy gets one
    document for each sentence, with entities; each character is a token.

    \b
    Example:
      spacy-psa convert bmes train.char.bmes train.spacy
    """
    from spacy_psa.corpora.bmes import read_docs, resolve_format
    from spacy_psa.corpora.docbin import check_docbin_path

    check_docbin_path(target)
    written = resolve_format(source, scheme.value)
    if scheme is SchemeChoice.auto:
        typer.echo(f"{source}: entity column is {written.scheme.upper()}")
    repairs: Counter[str] = Counter()
    docs = read_docs(source, vocab_of(lang), written, repairs, join_types)
    write_docs(source, target, docs, repairs)


@convert_app.command()
def sample(source: Source, target: Target, lang: Lang = "en") -> None:
    """Convert the sample corpus to a .spacy file.

    IN has JSON lines with words, tags, chunks, entities and a tree. OUT.spacy gets one document for
    each line.

    \b
    Example:
      spacy-psa convert sample assets/sample/train.jsonl train.spacy
    """
    from spacy_psa.corpora.docbin import check_docbin_path
    from spacy_psa.corpora.jsonl import read_docs

    check_docbin_path(target)
    repairs: Counter[str] = Counter()
    write_docs(source, target, read_docs(source, vocab_of(lang), repairs), repairs)


@convert_app.command()
def glove(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="The official .zip, or a .txt or .gz file to read.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.txt", help="File to write.")],
    dim: Annotated[int, typer.Option(min=1, help="Number of components of each vector.")] = 100,
    member: Annotated[
        str | None, typer.Option(help="File inside the .zip; default: the one that fits --dim.")
    ] = None,
) -> None:
    """Convert GloVe vectors for `spacy init vectors`.

    IN is checked line by line. OUT.txt gets the same vectors in word2vec's text format.

    \b
    Example:
      spacy-psa convert glove glove.6B.zip vectors.txt --dim 100
      python -m spacy init vectors en vectors.txt vectors
    """
    from spacy_psa.corpora.glove import prepare_vectors

    rows = prepare_vectors(source, target, dim, member, watch=watched)
    typer.echo(f"{source} -> {target}: {rows:,} vectors of {dim} numbers")


for command in (ptb, brackets, spmrl, ctb, export):
    convert_app.command()(command)


def _whole(source: Path, docs: Iterable["Doc"]) -> Iterator["Doc"]:
    """Join the sentences of each document; warn of a file that names none."""
    from spacy_psa.corpora.documents import join_documents
    from spacy_psa.sentences import name_of_document

    named = False

    def seen() -> Iterator["Doc"]:
        nonlocal named
        for doc in docs:
            named = named or bool(name_of_document(doc))
            yield doc

    yield from join_documents(seen())
    if not named:
        typer.echo(
            f"warning: {source}: has no -DOCSTART- lines, so each sentence is a document", err=True
        )
