"""`spacy-psa parse` and `spacy-psa trees`: files in, constituency trees out."""

from pathlib import Path
from typing import Annotated

import typer

from spacy_psa.annotation.input import Columns, Reading
from spacy_psa.annotation.tree_writers import TreeFormat
from spacy_psa.cli.options import BatchSize, Format, Gpu, Model, NProcess, SkipBad, Source, TextKey
from spacy_psa.cli.progress import annotating

Target = Annotated[
    Path, typer.Argument(metavar="[OUTPUT]", help='File to write; "-" or nothing for stdout.')
]
OutputFormat = Annotated[
    TreeFormat, typer.Option("--format", help="Format of OUTPUT; auto goes by the name.")
]


def parse(
    model: Model,
    source: Source,
    target: Target = Path("-"),
    input_format: Format = "auto",
    output_format: OutputFormat = "auto",
    word_column: Annotated[
        int, typer.Option(help="Column of the word in conll, from 0; -1 is the last.")
    ] = 0,
    tag_column: Annotated[
        int | None, typer.Option(help="Column of the tag in conll; default: no tags.")
    ] = None,
    sentencizer: Annotated[
        bool, typer.Option("--sentencizer", help="Split text at punctuation into sentences first.")
    ] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Write the probability of each constituent.")
    ] = False,
    pipe: Annotated[
        str | None, typer.Option(help="Name of the parser, if there are several.")
    ] = None,
    batch_size: BatchSize = 256,
    n_process: NProcess = 1,
    text_key: TextKey = "text",
    skip_bad: SkipBad = False,
    gpu_id: Gpu = -1,
) -> None:
    """Parse files to constituency trees.

    INPUT is text, tokenised sentences, JSON lines ({"text": ...} or {"tokens": [...], "tags":
    [...]}), columns, trees in brackets, of which the words and tags are read, or a .spacy file; it
    may be gzipped (.gz). OUTPUT has a tree in brackets on each line, indented trees, JSON lines
    with the trees and the offsets of the constituents, one drawing, or documents. A sentence
    without words, or one that cannot be parsed, is "(())", so that lines stay aligned; only empty
    lines of text are left out. Tags of the input are read; a tagger in the pipeline, or the tag
    head of the parser, may replace them. Tokens of the input may be written as in a treebank
    (-LRB-, 1\\/2). From .spacy to .spacy, all other annotation stays.

    JSON lines have the probability of each constituent if the parser was trained by likelihood.

    \b
    Example:
      spacy-psa parse training/model-best sentences.txt trees.txt --input-format tokens
      spacy-psa parse training/model-best texts.jsonl trees.jsonl
      spacy-psa parse training/model-best tagged.conll trees.mrg --tag-column 1
    """
    from spacy_psa.annotation import files

    columns = Columns(word_column, tag_column)
    reading = Reading(input_format, text_key, keep=True, columns=columns, unescaped=True)
    annotating(
        lambda run: files.parse(
            model, source, target, reading, output_format, run, pipe, sentencizer, confidence
        ),
        gpu_id=gpu_id,
        batch_size=batch_size,
        n_process=n_process,
        skip_bad=skip_bad,
    )


def trees(
    source: Annotated[
        Path, typer.Argument(metavar="IN.spacy", help='File with trees to read; "-" for stdin.')
    ],
    target: Target = Path("-"),
    output_format: OutputFormat = "auto",
    key: Annotated[str, typer.Option(help="Span group with the constituents.")] = "constituents",
) -> None:
    """Write the trees of a .spacy file.

    They are written in brackets, or as `parse` writes them.

    \b
    Example:
      spacy-psa trees dev.spacy dev.txt
    """
    from spacy_psa.annotation import files

    annotating(lambda run: files.write_trees(source, target, output_format, key, run))
