"""`spacy-psa visualize`: entities as an HTML page, constituency trees as pictures."""

import html
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.annotation.input import InputFormat
from spacy_psa.cli.annotate import annotate_file, check_source
from spacy_psa.cli.html_writer import HtmlWriter, drawn_entities
from spacy_psa.cli.output import open_output

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span

    from spacy_psa.pipeline.chain.span_labeler import SpanLabeler

visualize_app = typer.Typer(
    name="visualize",
    help="Draw the entities or trees that a pipeline finds.",
    no_args_is_help=True,
)

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="Folder or installed package of a pipeline.")
]
Source = Annotated[Path, typer.Argument(metavar="INPUT", help='File to read; "-" for stdin.')]
Page = Annotated[Path, typer.Argument(metavar="OUTPUT.html", help='Page to write; "-" for stdout.')]
Format = Annotated[
    InputFormat,
    typer.Option(help="Format of INPUT; text is one document a line, auto goes by the name."),
]
TextKey = Annotated[str, typer.Option(help="Key of the text in a JSON line.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Number of documents in a batch.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip malformed lines and count them.")]
GpuId = Annotated[int, typer.Option(min=-1, help="Number of the GPU; -1 for the CPU.")]

PALETTE = [
    "#aec7e8",
    "#ffbb78",
    "#98df8a",
    "#ff9896",
    "#c5b0d5",
    "#e7cb94",
    "#f7b6d2",
    "#9edae5",
    "#dbdb8d",
    "#c7c7c7",
]
"""Colours of labels, in turn; they are light enough for black text."""
NO_BREAK = "\N{NO-BREAK SPACE}"


@visualize_app.command()
def ents(
    model: Model,
    source: Source,
    target: Page,
    pipe: Annotated[
        str | None, typer.Option(help="Name of the crf_ner or crf_chunker, if there are several.")
    ] = None,
    input_format: Format = InputFormat.auto,
    batch_size: BatchSize = 256,
    text_key: TextKey = "text",
    skip_bad: SkipBad = False,
    gpu_id: GpuId = -1,
) -> None:
    """Draw entities or chunks with their probabilities.

    Reads the same INPUT as `annotate`. Writes an HTML page that needs no other files. If the config
    of the pipeline has decode = "threshold", all spans above the threshold are drawn, also
    overlapping ones.

    \b
    Example:
      spacy-psa visualize ents training/model-best texts.txt entities.html
    """
    from spacy_psa.loading import confident_pipe, load_pipeline

    check_source(source, input_format)
    nlp = load_pipeline(model, gpu_id)
    component = confident_pipe(nlp, pipe)
    annotate_file(
        lambda: nlp,
        source,
        open_confidence_page(target, component),
        input_format=input_format,
        batch_size=batch_size,
        text_key=text_key,
        skip_bad=skip_bad,
    )


@visualize_app.command()
def trees(
    model: Model,
    source: Source,
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUTPUT.svg|.txt", help="File to write; its ending gives the format."
        ),
    ],
    pipe: Annotated[
        str | None, typer.Option(help="Name of the parser, if there are several.")
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Put its probability behind each label.")
    ] = False,
    input_format: Format = InputFormat.auto,
    batch_size: BatchSize = 256,
    text_key: TextKey = "text",
    skip_bad: SkipBad = False,
    gpu_id: GpuId = -1,
) -> None:
    """Draw constituency trees.

    Reads the same INPUT as `annotate`. Writes all trees to one SVG drawing, one below the other, or
    as text. The pipeline needs a constituency_parser.

    \b
    Example:
      spacy-psa visualize trees training/model-best texts.txt trees.svg
    """
    from spacy_psa.cli.parse import find_parser, open_parser
    from spacy_psa.cli.tree_pictures import check_picture, open_pictures

    check_source(source, input_format)
    check_picture(target)
    nlp = open_parser(
        model, gpu_id=gpu_id, pipe=pipe, sentencizer=False, confidence=confidence, json=False
    )
    parser = find_parser(nlp, model, pipe)
    annotate_file(
        lambda: nlp,
        source,
        open_pictures(target, parser.spans_key),
        input_format=input_format,
        batch_size=batch_size,
        text_key=text_key,
        skip_bad=skip_bad,
        keep=True,
    )


@contextmanager
def open_confidence_page(path: Path, pipe: "SpanLabeler") -> Iterator[HtmlWriter]:
    """Open a page at `path`; the file appears complete at the end, or not at all.

    Raises:
        InputError: if the file cannot be written.
    """
    with open_output(path) as stream:
        page = HtmlWriter(stream, f"Confidence of {pipe.name}", ConfidenceView(pipe))
        yield page
        page.finish()


class ConfidenceView:
    """Gives displaCy's view of the spans of a component, with labels such as "PER 0.97".

    Args:
        pipe: the component; each of its labels has a colour.
    """

    def __init__(self, pipe: "SpanLabeler") -> None:
        from spacy.displacy.render import SpanRenderer

        self.key = pipe.name
        self.colours = {label: PALETTE[i % len(PALETTE)] for i, label in enumerate(pipe.labels)}
        self.span_renderer = SpanRenderer() if pipe.decoding == "threshold" else None

    def __call__(self, doc: "Doc") -> str:
        """Give the view of a document, as HTML."""
        group = doc.spans[self.key]
        scored = list(zip(group, group.attrs["scores"], strict=True))
        if self.span_renderer is not None:
            return self._overlapping(doc, scored)
        shown = [
            {
                "start": span.start_char,
                "end": span.end_char,
                "label": _label(span, score),
                "params": {"bg": self._colour(span)},
            }
            for span, score in scored
        ]
        return drawn_entities(doc, shown)

    def _overlapping(self, doc: "Doc", scored: "list[tuple[Span, float]]") -> str:
        assert self.span_renderer is not None
        shown = []
        for span, score in scored:
            label = _label(span, score).replace(" ", NO_BREAK)
            # This renderer takes colours in no other way.
            self.span_renderer.colors[label.upper()] = self._colour(span)
            shown.append(
                {"start_token": span.start, "end_token": span.end, "label": label}
                | {"start": span.start_char, "end": span.end_char}
            )
        settings = {"lang": doc.lang_, "direction": doc.vocab.writing_system["direction"]}
        tokens = [token.text for token in doc]
        parsed = {"tokens": tokens, "spans": shown, "title": None, "settings": settings}
        return self.span_renderer.render([parsed])

    def _colour(self, span: "Span") -> str:
        return self.colours.get(span.label_, "#ddd")  # an entity set before may have another label


def _label(span: "Span", score: float) -> str:
    return f"{html.escape(span.label_)} {score:.2f}"
