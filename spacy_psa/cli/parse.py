"""`spacy-psa parse` and `spacy-psa trees`: files in, constituency trees out."""

from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.annotation.input import InputFormat, resolve_format
from spacy_psa.annotation.rows import ANNOTATION
from spacy_psa.annotation.tokenized import Columns
from spacy_psa.cli.annotate import annotate_file, check_source
from spacy_psa.cli.tree_output import TreeFormat, gap_of, open_tree_writer, resolve_tree_format
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language

    from spacy_psa.pipeline.parser.parser import ConstituencyParser

Target = Annotated[
    Path, typer.Argument(metavar="[OUTPUT]", help='File to write; "-" or nothing for stdout.')
]
Format = Annotated[
    TreeFormat, typer.Option("--format", help="Format of OUTPUT; auto goes by the name.")
]


def parse(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder or installed package of a pipeline.")
    ],
    source: Annotated[Path, typer.Argument(metavar="INPUT", help='File to read; "-" for stdin.')],
    target: Target = Path("-"),
    input_format: Annotated[
        InputFormat,
        typer.Option(
            help="Format of INPUT; text is one document a line, tokens one sentence a line with "
            "blanks between its tokens, conll one token a line, auto goes by the name."
        ),
    ] = InputFormat.auto,
    output_format: Format = TreeFormat.auto,
    word_column: Annotated[
        int, typer.Option(help="Column of the word in conll, from 0; -1 is the last.")
    ] = 0,
    tag_column: Annotated[
        int | None, typer.Option(help="Column of the tag in conll; default: no tags.")
    ] = None,
    sentencizer: Annotated[
        bool,
        typer.Option("--sentencizer", help="Split text at punctuation into sentences first."),
    ] = False,
    confidence: Annotated[
        bool,
        typer.Option("--confidence", help="Write the probability of each constituent, too."),
    ] = False,
    pipe: Annotated[
        str | None, typer.Option(help="Name of the parser, if there are several.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Number of documents in a batch.")] = 256,
    n_process: Annotated[
        int, typer.Option(min=-1, help="Number of processes; -1 for one per core.")
    ] = 1,
    text_key: Annotated[str, typer.Option(help="Key of the text in a JSON line.")] = "text",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip malformed lines and count them.")
    ] = False,
    gpu_id: Annotated[int, typer.Option(min=-1, help="Number of the GPU; -1 for the CPU.")] = -1,
) -> None:
    """Parse files to constituency trees.

    INPUT is text, tokenised sentences, JSON lines ({"text": ...} or {"tokens": [...], "tags":
    [...]}), columns or a .spacy file; it may be gzipped (.gz). OUTPUT has a tree in brackets on
    each line, indented trees, JSON lines with the trees and the offsets of the constituents, one
    drawing, or documents. A sentence without words, or one that cannot be parsed, is "(())", so
    that lines stay aligned; only empty lines of text are left out. Tags of the input are read; a
    tagger in the pipeline, or the tag head of the parser, may replace them. Given tokens may be
    written as in a treebank (-LRB-, 1\\/2). From .spacy to .spacy, all other annotation stays.

    JSON lines have the probability of each constituent if the parser was trained by likelihood.

    \b
    Example:
      spacy-psa parse training/model-best sentences.txt trees.txt --input-format tokens
      spacy-psa parse training/model-best texts.jsonl trees.jsonl
      spacy-psa parse training/model-best tagged.conll trees.mrg --tag-column 1
    """
    if n_process == 0:
        raise InputError("--n-process 0: give a number of processes, or -1 for one per core")
    if text_key in (*ANNOTATION, "trees"):
        raise InputError(f"--text-key {text_key}: this key has the annotation; give another one")
    check_source(source, input_format)
    form = resolve_tree_format(target, output_format)
    given = resolve_format(source, input_format)
    opening = partial(
        open_parser,
        model,
        gpu_id=gpu_id,
        pipe=pipe,
        sentencizer=sentencizer,
        confidence=confidence,
        json=form is TreeFormat.jsonl,
    )
    nlp = opening()
    key = find_parser(nlp, model, pipe).spans_key
    annotate_file(
        opening if n_process != 1 else lambda: nlp,
        source,
        open_tree_writer(
            target, form, key=key, gaps=given is not InputFormat.text, text_key=text_key
        ),
        input_format=input_format,
        batch_size=batch_size,
        n_process=n_process,
        text_key=text_key,
        skip_bad=skip_bad,
        columns=Columns(word_column, tag_column),
        keep=True,
        trees=True,
        gap=gap_of(form, given is not InputFormat.text),
    )


def trees(
    source: Annotated[
        Path, typer.Argument(metavar="IN.spacy", help='File with trees to read; "-" for stdin.')
    ],
    target: Target = Path("-"),
    output_format: Format = TreeFormat.auto,
    key: Annotated[str, typer.Option(help="Span group with the constituents.")] = "constituents",
) -> None:
    """Write the trees of a .spacy file in brackets, or as `parse` writes them.

    \b
    Example:
      spacy-psa trees dev.spacy dev.txt
    """
    import spacy

    check_source(source, InputFormat.spacy)
    form = resolve_tree_format(target, output_format)
    annotate_file(
        partial(spacy.blank, "xx"),
        source,
        open_tree_writer(target, form, key=key, gaps=True),
        input_format=InputFormat.spacy,
        batch_size=256,
        text_key="text",
        skip_bad=False,
        keep=True,
        trees=True,
        gap=gap_of(form, True),
    )


def open_parser(
    model: str,
    *,
    gpu_id: int,
    pipe: str | None,
    sentencizer: bool,
    confidence: bool,
    json: bool,
) -> "Language":
    """Open a pipeline with a parser.

    Args:
        model: the folder of a pipeline, or the name of an installed package.
        gpu_id: the number of the GPU; -1 for the CPU.
        pipe: the name of the parser; None if there is only one.
        sentencizer: whether to put a sentencizer first, unless there is one before the parser.
        confidence: whether to write confidences.
        json: whether to write them if the parser was trained for them.

    Raises:
        InputError: as `load_pipeline` and `find_parser`.
    """
    from spacy.pipeline import Sentencizer

    from spacy_psa.loading import load_pipeline
    from spacy_psa.pipeline.parser.parser import ConstituencyParser

    nlp = load_pipeline(model, gpu_id)
    parser = find_parser(nlp, model, pipe)
    for _, each in nlp.pipeline:
        if isinstance(each, ConstituencyParser):
            each.overwrite = True  # documents may have trees; they are replaced
    parser.confidence = parser.confidence or confidence or (json and not parser.ranks_only)
    before = nlp.pipeline[: nlp.pipe_names.index(parser.name)]
    if sentencizer and not any(isinstance(each, Sentencizer) for _, each in before):
        names = chain(["sentencizer"], (f"sentencizer_{number}" for number in count(2)))
        name = next(name for name in names if name not in nlp.component_names)
        nlp.add_pipe("sentencizer", name=name, first=True)
    return nlp


def find_parser(nlp: "Language", model: str, name: str | None) -> "ConstituencyParser":
    """Find the parser of a pipeline.

    Raises:
        InputError: if there is none of this name, or if there are several and `name` is None.
    """
    from spacy_psa.pipeline.parser.parser import ConstituencyParser

    found = {key: pipe for key, pipe in nlp.pipeline if isinstance(pipe, ConstituencyParser)}
    if not found:
        raise InputError(f"{model}: the pipeline has no constituency_parser; give one that has")
    if name is None and len(found) > 1:
        raise InputError(f"{model}: several parsers: choose one with --pipe {' or '.join(found)}")
    if name is not None and name not in found:
        raise InputError(f"--pipe {name}: no such constituency_parser; take {', '.join(found)}")
    return found[name or next(iter(found))]
