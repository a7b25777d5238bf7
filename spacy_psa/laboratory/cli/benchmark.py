"""`spacy-psa benchmark`: the speed of pipelines, measured side by side."""

import json
import shlex
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_psa.errors import InputError

benchmark_app = typer.Typer(
    name="benchmark", help="Measure the speed of pipelines, side by side.", no_args_is_help=True
)


@benchmark_app.callback()
def benchmark() -> None:
    """Measure the speed of pipelines, side by side."""


class Section(str, Enum):
    """The sections of the benchmark."""

    annotation = "annotation"
    training = "training"
    loading = "loading"
    memory = "memory"
    lengths = "lengths"
    labels = "labels"


@benchmark_app.command("speed")
def speed(
    data: Annotated[
        Path, typer.Argument(metavar="DATA.spacy", help="Documents with the words to annotate.")
    ],
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]MODEL...",
            help="Folders or packages of pipelines, or training configs (.cfg).",
        ),
    ],
    section: Annotated[
        list[Section] | None, typer.Option(help="Section to measure; may be repeated.")
    ] = None,
    words: Annotated[
        int, typer.Option(min=1, help="Number of words to annotate in each run.")
    ] = 20_000,
    repeats: Annotated[int, typer.Option(min=1, help="Number of runs of each pipeline.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads and processors.")] = 1,
    train: Annotated[Path | None, typer.Option(help="Training data, a .spacy file.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps in each run.")] = 20,
    batch: Annotated[int, typer.Option(min=1, help="Number of documents in a training step.")] = 10,
    vectors: Annotated[
        str | None, typer.Option(help="Pipeline with the word vectors of a config.")
    ] = None,
    memory_words: Annotated[
        list[int] | None,
        typer.Option(
            help="Words of a stream, for memory; may be repeated; default: 200000, 1000000."
        ),
    ] = None,
    long_words: Annotated[
        list[int] | None,
        typer.Option(
            help="Words of one document, for memory; may be repeated; default: 25000, 100000."
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Path of the output files, without the ending.")
    ] = Path("speed"),
) -> None:
    """Time pipelines on the same words, in turn.

    All pipelines run in one process on one machine. Each round takes them in the opposite order of
    the round before; a first round does not count. DATA.spacy has the words to annotate. A MODEL is
    a trained pipeline, or a training config (.cfg) for one with random weights, which needs
    --train. Without --section, annotation and loading are measured, and training if --train is
    given.

    Writes OUTPUT.json (its keys are described in performance.sections), tables in
    OUTPUT.md and a picture in OUTPUT.png.

    \b
    Example:
      spacy-psa benchmark speed test.spacy psa=training/psa/model-best \\
          base=training/bilstm_crf/model-best --output speed
    """
    from spacy_psa.analysis.figures import check_matplotlib
    from spacy_psa.laboratory.performance import sections
    from spacy_psa.laboratory.performance.pipelines import (
        Annotation,
        Training,
        named_rows,
        open_pipelines,
        read_words,
    )
    from spacy_psa.laboratory.performance.timing import pin_threads

    check_matplotlib()
    paths = named_rows(models)
    wanted = _wanted(section, train)
    if Section.training in wanted and train is None:
        raise InputError("--section training: needs training data; give --train TRAIN.spacy")
    pin_threads(threads)
    sentences = read_words(data, words)
    nlps = open_pipelines(paths, train, vectors)
    saved = {name: path for name, path in paths.items() if not path.endswith(".cfg")}
    found: dict[str, Any] = {}
    if Section.annotation in wanted:
        rows = [Annotation(name, nlp, sentences) for name, nlp in nlps.items()]
        found["annotation"] = {"words": words, "rows": sections.timed(rows, repeats, _tell)}
    if Section.lengths in wanted:
        found["lengths"] = sections.lengths(nlps, sentences, words, repeats, _tell)
    if Section.labels in wanted:
        found["labels"] = sections.labels(nlps, sentences, words, repeats, _tell)
    if Section.training in wanted and train is not None:  # last: it changes the weights
        loops = [Training(name, nlp, train, steps, batch) for name, nlp in nlps.items()]
        timed = sections.timed(loops, repeats, _tell)
        found["training"] = {"batch": batch, "steps": steps, "rows": timed}
    if Section.loading in wanted:
        found["loading"] = sections.loading(saved, repeats, _tell)
    if Section.memory in wanted:
        streams, single = memory_words or [200_000, 1_000_000], long_words or [25_000, 100_000]
        found["memory"] = sections.memory(saved, data, streams, single)
    settings = {"threads": threads, "repeats": repeats}
    files = [data, *([train] if train else [])]
    command = shlex.join(["spacy-psa", *sys.argv[1:]])
    write(sections.record(command, settings, paths, files, found), output)


def write(record: dict[str, Any], output: Path) -> None:
    """Write OUTPUT.json, OUTPUT.md and OUTPUT.png, and print the tables.

    Args:
        record: see `performance.sections`.
        output: OUTPUT, the path without its ending.
    """
    from rich.console import Console
    from rich.markdown import Markdown

    from spacy_psa.corpora.atomic import atomic_path
    from spacy_psa.laboratory.performance.tables import draw, markdown

    tables = markdown(record)
    content = {".json": json.dumps(record, indent=1, ensure_ascii=False) + "\n", ".md": tables}
    for suffix, text in content.items():
        with atomic_path(output.with_name(output.name + suffix)) as temporary:
            temporary.write_text(text, encoding="utf8")
    draw(record, output.with_name(output.name + ".png"))
    Console().print(Markdown(tables))
    typer.echo(f"Written: {output}.json, {output}.md, {output}.png")


def _wanted(section: list[Section] | None, train: Path | None) -> list[Section]:
    if section:
        return section
    return [Section.annotation, Section.loading, *([Section.training] if train else [])]


def _tell(name: str, number: int) -> None:
    typer.echo(f"round {number}: {name}", err=True)
