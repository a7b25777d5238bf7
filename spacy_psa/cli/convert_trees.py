"""`spacy-psa convert` for treebanks: constituency trees to the files that spaCy trains from."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.cli.convert_options import (
    Collection,
    Lang,
    Marks,
    QuoteChoice,
    Sections,
    Source,
    Spaces,
    Target,
    vocab_of,
    write_docs,
)

if TYPE_CHECKING:
    from spacy.tokens import Doc


class LabelChoice(str, Enum):
    """The parts of labels that are kept."""

    bare = "bare"
    functions = "functions"
    whole = "whole"


class DiscontinuousChoice(str, Enum):
    """What becomes of discontinuous trees."""

    skip = "skip"
    up = "raise"


LabelParts = Annotated[
    LabelChoice,
    typer.Option(
        help="Parts of labels to keep: categories (NP), functions too (NP-SBJ), or all (NP-SBJ-1)."
    ),
]
XOverX = Annotated[
    bool,
    typer.Option(
        "--x-over-x/--merge-x-over-x",
        help="Keep a constituent below one with the same label and words, as the files of parsing "
        "papers do, or merge the two.",
    ),
]


def ptb(
    source: Collection,
    target: Target,
    sections: Sections = "",
    labels: LabelParts = LabelChoice.bare,
    x_over_x: XOverX = False,
    quotes: Marks = QuoteChoice.treebank,
    spaces: Spaces = False,
    lang: Lang = "en",
) -> None:
    """Convert Penn Treebank .mrg files to a .spacy file.

    OUT.spacy gets one document for each tree, with parts of speech and constituents. Empty elements
    and function tags are removed. A single file may have any name.

    \b
    Example:
      spacy-psa convert ptb treebank/combined train.spacy --sections 02-21
    """
    from spacy_psa.corpora.treebanks import parse_sections

    chosen = parse_sections(sections) if sections else None
    _convert("ptb", source, target, lang, chosen, labels, x_over_x, quotes, spaces)


def brackets(
    source: Source,
    target: Target,
    labels: LabelParts = LabelChoice.whole,
    x_over_x: XOverX = True,
    indented: Annotated[
        bool, typer.Option("--indented", help="Read trees that take several lines, too.")
    ] = False,
    quotes: Marks = QuoteChoice.treebank,
    spaces: Spaces = False,
    lang: Lang = "en",
) -> None:
    """Convert bracketed trees to a .spacy file.

    IN has one tree on each line. OUT.spacy gets one document for each tree, with parts of speech
    and constituents; the labels are kept as they are.

    \b
    Example:
      spacy-psa convert brackets trees.txt trees.spacy
    """
    from spacy_psa.corpora.bracketing import AS_IS
    from spacy_psa.corpora.treebanks import read_bracket_docs

    style = replace(AS_IS, labels=labels.value, merge_same=not x_over_x)
    repairs: Counter[str] = Counter()
    docs = read_bracket_docs(source, vocab_of(lang), repairs, style, one_a_line=not indented)
    _write(source, target, docs, repairs, quotes, spaces)


def spmrl(
    source: Collection,
    target: Target,
    labels: LabelParts = LabelChoice.bare,
    x_over_x: XOverX = True,
    lang: Lang = "de",
) -> None:
    """Convert treebanks of the SPMRL shared tasks to a .spacy file.

    IN has .ptb or .mrg files. OUT.spacy gets one document for each tree, with parts of speech and
    constituents. Features (NN##case=nom##) and the root VROOT are left out. The shared tasks score
    punctuation too: evaluate-trees --keep-punctuation.

    \b
    Example:
      spacy-psa convert spmrl train.German.gold.ptb train.spacy --lang de
    """
    _convert("spmrl", source, target, lang, None, labels, x_over_x)


def ctb(
    source: Collection,
    target: Target,
    files: Annotated[
        str, typer.Option(help="Numbers of the files to keep (1-270,440-1151); default: all.")
    ] = "",
    labels: LabelParts = LabelChoice.bare,
    x_over_x: XOverX = False,
    lang: Lang = "zh",
) -> None:
    """Convert the Penn Chinese Treebank to a .spacy file.

    IN has bracketed files, such as chtb_0001.fid or chtb_0001.nw, with or without mark-up.
    OUT.spacy gets one document for each tree, with parts of speech and constituents. Empty elements
    and function tags are removed.

    \b
    Example:
      spacy-psa convert ctb ctb9.0/data/bracketed train.spacy --files 1-270,440-1151
    """
    from spacy_psa.corpora.treebanks import LAST_FILE, parse_numbers

    chosen = parse_numbers(files, "--files", LAST_FILE) if files else None
    _convert("ctb", source, target, lang, chosen, labels, x_over_x)


def export(
    source: Collection,
    target: Target,
    sentences: Annotated[
        str, typer.Option(help="Numbers of the sentences to keep (1-40000); default: all.")
    ] = "",
    labels: LabelParts = LabelChoice.bare,
    discontinuous: Annotated[
        DiscontinuousChoice,
        typer.Option(help="Leave discontinuous trees out, or raise what stands beside the gap."),
    ] = DiscontinuousChoice.skip,
    lang: Lang = "de",
) -> None:
    """Convert TIGER or NEGRA in export format to a .spacy file.

    IN has .export or .negra files. OUT.spacy gets one document for each tree, with parts of speech
    and constituents. Punctuation that hangs at the root is put into the lowest constituent around
    it. Trees that are still discontinuous are left out, or made continuous with --discontinuous
    raise; a warning counts them.

    \b
    Example:
      spacy-psa convert export tiger_release_aug07.export train.spacy --sentences 1-40474
    """
    from spacy_psa.corpora.negra_export import LAST, read_docs
    from spacy_psa.corpora.treebanks import parse_numbers

    chosen = parse_numbers(sentences, "--sentences", LAST) if sentences else None
    repairs: Counter[str] = Counter()
    docs = read_docs(source, vocab_of(lang), repairs, chosen, labels.value, discontinuous.value)
    _write(source, target, docs, repairs)


def _convert(
    family: str,
    source: Path,
    target: Path,
    lang: str,
    numbers: "frozenset[int] | None",
    labels: LabelChoice,
    x_over_x: bool,
    quotes: QuoteChoice = QuoteChoice.treebank,
    spaces: bool = False,
) -> None:
    """Convert the files of a family of treebanks."""
    from spacy_psa.corpora.treebanks import TREEBANKS, read_docs

    style = replace(TREEBANKS[family].style, labels=labels.value, merge_same=not x_over_x)
    repairs: Counter[str] = Counter()
    docs = read_docs(family, source, vocab_of(lang), repairs, numbers, style)
    _write(source, target, docs, repairs, quotes, spaces)


def _write(
    source: Path,
    target: Path,
    docs: "Iterable[Doc]",
    repairs: Counter[str],
    quotes: QuoteChoice = QuoteChoice.treebank,
    spaces: bool = False,
) -> None:
    from spacy_psa.corpora.quotes import as_text

    write_docs(source, target, as_text(docs, quotes.value, spaces), repairs)
