"""`spacy-psa visualize`: entities and spans as an HTML page, constituency trees as pictures."""

from pathlib import Path
from typing import Annotated

import typer

from spacy_psa.annotation.input import Reading
from spacy_psa.cli.options import BatchSize, Format, Gpu, Model, SkipBad, Source, TextKey
from spacy_psa.cli.progress import annotating

visualize_app = typer.Typer(
    name="visualize", help="Draw the entities or trees that a pipeline finds.", no_args_is_help=True
)


@visualize_app.command()
def ents(
    model: Model,
    source: Source,
    target: Annotated[
        Path, typer.Argument(metavar="OUTPUT.html", help='Page to write; "-" for stdout.')
    ],
    pipe: Annotated[str | None, typer.Option(help="Name of the component, if several fit.")] = None,
    input_format: Format = "auto",
    batch_size: BatchSize = 256,
    text_key: TextKey = "text",
    skip_bad: SkipBad = False,
    gpu_id: Gpu = -1,
) -> None:
    """Draw entities, chunks or nested spans with their probabilities.

    Reads the same INPUT as `annotate`. Writes an HTML page that needs no other files. Nested spans
    are lines below the text, in displaCy's span style. If the config of the pipeline has decode =
    "threshold", all spans above the threshold are drawn, also overlapping ones.

    \b
    Example:
      spacy-psa visualize ents training/model-best texts.txt entities.html
    """
    from spacy_psa.annotation import files

    reading = Reading(input_format, text_key)
    annotating(
        lambda run: files.draw_spans(model, source, target, reading, run, pipe),
        gpu_id=gpu_id,
        batch_size=batch_size,
        skip_bad=skip_bad,
    )


@visualize_app.command()
def trees(
    model: Model,
    source: Source,
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUTPUT.svg|.txt", help="File to write; its ending chooses the format."
        ),
    ],
    pipe: Annotated[
        str | None, typer.Option(help="Name of the parser, if there are several.")
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Put its probability behind each label.")
    ] = False,
    input_format: Format = "auto",
    batch_size: BatchSize = 256,
    text_key: TextKey = "text",
    skip_bad: SkipBad = False,
    gpu_id: Gpu = -1,
) -> None:
    """Draw constituency trees.

    Reads the same INPUT as `annotate`. Writes all trees to one SVG drawing, one below the other, or
    as text. The pipeline needs a constituency_parser.

    \b
    Example:
      spacy-psa visualize trees training/model-best texts.txt trees.svg
    """
    from spacy_psa.annotation import files

    reading = Reading(input_format, text_key, keep=True)
    annotating(
        lambda run: files.draw_trees(model, source, target, reading, run, pipe, confidence),
        gpu_id=gpu_id,
        batch_size=batch_size,
        skip_bad=skip_bad,
    )
