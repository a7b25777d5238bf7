"""`spacy-psa annotate`: reads text and writes annotated documents, as a stream."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spacy_psa.annotation.input import Reading
from spacy_psa.annotation.writers import OutputFormat, resolve_format
from spacy_psa.cli.options import (
    Address,
    BatchSize,
    Engine,
    Format,
    Gpu,
    Model,
    NProcess,
    Pipe,
    SkipBad,
    TextKey,
)
from spacy_psa.cli.progress import annotating
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy_psa.annotation.questions import MakeQuestion


def annotate(
    model: Model,
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help='File to read; "-" for stdin. With ray, a folder or address is possible.',
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUT", help='File to write; "-" for stdout. With ray, a folder or address.'
        ),
    ],
    input_format: Format = "auto",
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="Format of OUTPUT; auto goes by the name.")
    ] = "auto",
    batch_size: BatchSize = 256,
    n_process: NProcess = 1,
    gpu_id: Gpu = -1,
    text_key: TextKey = "text",
    scheme: Annotated[
        Literal["bio", "bioes"], typer.Option(help="Tag scheme of the CoNLL columns.")
    ] = "bio",
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Write the tokens to JSON lines.")
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep all annotation of a .spacy file, not only words and sentences."
        ),
    ] = False,
    skip_bad: SkipBad = False,
    engine: Annotated[
        Engine, typer.Option(help="local, or ray for many files, on this machine or a cluster.")
    ] = "local",
    address: Address = None,
    counts: Annotated[
        Path | None,
        typer.Option(help="JSON file for the numbers of mentions and distinct entities."),
    ] = None,
    redact: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS", help="Labels, with commas between, of spans to replace in the text."
        ),
    ] = None,
    recall: Annotated[
        float | None, typer.Option(help="With --redact: the recall that MODEL has to promise.")
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option(help="With --redact: JSON lines of the spans that a person should look at."),
    ] = None,
    pipe: Pipe = None,
) -> None:
    """Annotate text with a trained pipeline.

    INPUT is text with one document on each line, JSON lines ({"text": ...} or {"tokens": [...]}), a
    .spacy file, tokenised sentences or columns; it may be gzipped (.gz). OUTPUT is JSON lines
    (text, entities with character offsets), a .spacy file, CoNLL columns, an HTML page or, with
    --format label-studio, tasks of Label Studio with predictions and their probabilities. JSON
    keeps the other keys of the input, except ents, spans and tokens. Trees are a column of
    CoNLL files, as in CoNLL-2012, and drawings of a page; `parse` writes them in brackets. The
    output file appears when all documents are done; a missing folder is made.

    Documents that cannot be annotated or written are named on stderr and left out. A malformed line
    ends the run, unless --skip-bad is given. The exit code is 1 if no document was annotated.

    With --engine ray, INPUT is a file or a folder of text, JSON lines or Parquet, and OUTPUT a
    folder, as paths or addresses (s3://bucket/folder). Each file of INPUT becomes one of OUTPUT:
    Parquet becomes Parquet and all others JSON lines, unless --format names one. A file of OUTPUT
    appears when all of it is done. A worker that is killed is started again. A file with a
    malformed line is not finished, but the others are. The same command annotates only the files
    that are not finished.

    With --counts, a crf_ner, crf_chunker or crf_spans also counts the mentions and the distinct
    entities of each label in all documents, with 95% intervals: it sums over all analyses, not only
    the best. `calibrate --counts` makes the intervals reliable.

    With --redact, OUTPUT has the texts with the spans of LABELS replaced by their labels, as in
    "[PER] left", in the key `redacted` their offsets in both texts, and no other annotation. All
    spans above the thresholds of `calibrate --recall` are replaced. Those that the best analysis
    does not have are listed in --review, with their texts. Other keys of the input stay.

    \b
    Example:
      spacy-psa annotate training/model-best texts.txt annotated.jsonl
      spacy-psa annotate training/model-best texts annotated --engine ray --n-process -1
    """
    from spacy_psa.annotation import files
    from spacy_psa.annotation.questions import Counting, Redacting

    asked = {"--counts": counts, "--redact": redact}
    given = [option for option, value in asked.items() if value is not None]
    if engine == "ray" and given:
        raise InputError(f"{given[0]}: is for --engine local; leave it out")
    if len(given) > 1:
        raise InputError("--counts: leave it out with --redact")
    if redact is None and (recall is not None or review is not None):
        raise InputError(f"{'--review' if review else '--recall'}: is for --redact; add it")
    if pipe is not None and not given:
        raise InputError(f"--pipe {pipe}: is for --counts and --redact; add one of them")
    if redact is not None and tokens:
        raise InputError("--tokens: would show what is replaced; leave it out with --redact")
    if recall is not None and not 0 < recall < 1:
        raise InputError(f"--recall {recall:g}: choose a number between 0 and 1, such as 0.95")
    labels = [label.strip() for label in (redact or "").split(",") if label.strip()]
    if redact is not None and not labels:
        raise InputError("--redact: name a label at least")
    if engine == "local" and address is not None:
        raise InputError(f"--address {address}: is for --engine ray; add this option")
    for option, path in (("--counts", counts), ("--review", review)):
        if path is not None and path.resolve() in (Path(source).resolve(), Path(target).resolve()):
            raise InputError(f"{option} {path}: is also INPUT or OUTPUT; choose another file")
    reading = Reading(input_format, text_key, keep)
    paths, form = (Path(source), Path(target)), output_format
    question: MakeQuestion | None = None
    if counts is not None:
        question = partial(Counting, name=pipe, path=counts)
    elif labels:
        form = resolve_format(paths[1], form)
        if form != "jsonl":
            raise InputError(f"--redact: writes JSON lines, not {form}; add --format jsonl")
        question = partial(
            Redacting, name=pipe, labels=labels, recall=recall, text_key=text_key, path=review
        )
    annotating(
        lambda run: (
            files.annotate(model, *paths, reading, form, run, scheme, tokens, question)
            if engine == "local"
            else files.annotate_on_ray(model, source, target, reading, form, run, tokens, address)
        ),
        gpu_id=gpu_id,
        batch_size=batch_size,
        n_process=n_process,
        skip_bad=skip_bad,
    )
