"""`spacy-psa benchmark`: the speed of pipelines, side by side, and where their time goes."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from spacy_psa.cli.console import print_markdown
from spacy_psa.cli.options import Output

benchmark_app = typer.Typer(
    name="benchmark", help="Measure the speed of pipelines, side by side.", no_args_is_help=True
)

Data = Annotated[
    Path, typer.Argument(metavar="DATA.spacy", help="Documents with the words to annotate.")
]
Train = Annotated[
    Path | None, typer.Option(help="Training data, a .spacy file, to measure training.")
]
Vectors = Annotated[str | None, typer.Option(help="Pipeline with the word vectors of a config.")]
Words = Annotated[int, typer.Option(min=1, help="Number of words to annotate in each run.")]
Steps = Annotated[int, typer.Option(min=1, help="Number of training steps in each run.")]
Batch = Annotated[int, typer.Option(min=1, help="Number of documents in a training step.")]


class Section(str, Enum):
    """The sections of the benchmark; an Enum, since Typer has no lists of Literals."""

    annotation = "annotation"
    training = "training"
    loading = "loading"
    memory = "memory"
    lengths = "lengths"
    labels = "labels"


@benchmark_app.command("speed")
def speed(
    data: Data,
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
    words: Words = 20_000,
    repeats: Annotated[int, typer.Option(min=1, help="Number of runs of each pipeline.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads and processors.")] = 1,
    train: Train = None,
    steps: Steps = 20,
    batch: Batch = 10,
    vectors: Vectors = None,
    output: Output = Path("speed"),
) -> None:
    """Time pipelines on the same words, in turn.

    All pipelines run in one process on one machine, in each round in the opposite order of the
    round before; a first round does not count. DATA.spacy has the words to annotate. A MODEL is a
    trained pipeline, or a training config (.cfg) for one with random weights, which needs --train.
    Without --section, annotation and loading are measured, and training if --train is given.
    Memory is measured for 200,000 and 1,000,000 words of documents, and for single documents of
    25,000 and 100,000 words.

    Writes OUTPUT.json (its keys are described in performance.sections), tables in
    OUTPUT.md and a picture in OUTPUT.png.

    \b
    Example:
      spacy-psa benchmark speed test.spacy psa=training/psa/model-best \\
          base=training/bilstm_crf/model-best --output speed
    """
    from spacy_psa.analysis.figures import check_matplotlib
    from spacy_psa.laboratory.performance.pipelines import named_rows
    from spacy_psa.laboratory.performance.sections import Plan, measure
    from spacy_psa.laboratory.performance.tables import write

    check_matplotlib()
    plan = Plan(data, train, vectors, words, steps, batch, repeats, threads)
    print_markdown(write(measure(named_rows(models), section or (), plan, _tell), output))
    typer.echo(f"Written: {output}.json, {output}.md, {output}.png")


def _tell(name: str, number: int) -> None:
    typer.echo(f"round {number}: {name}", err=True)


@benchmark_app.command("profile")
def profile(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Folder or package of a pipeline, or a training config (.cfg)."
        ),
    ],
    data: Data,
    train: Train = None,
    vectors: Vectors = None,
    words: Words = 20_000,
    steps: Steps = 20,
    batch: Batch = 10,
    repeats: Annotated[int, typer.Option(min=1, help="Number of runs.")] = 3,
    output: Output = Path("profile"),
) -> None:
    """Show where the time of a pipeline goes, by parts and by functions.

    The parts are the embedding, the encoder, the potentials, inference, reading and writing docs,
    the optimizer and spaCy. The annotation of DATA.spacy is profiled and, with --train, training,
    on one thread. A first run does not count. MODEL is a trained pipeline, or a training config
    (.cfg) for one with random weights, which needs --train and may need --vectors.

    Writes OUTPUT.json and tables in OUTPUT.md; and OUTPUT-annotation and OUTPUT-training, each as a
    flame graph (.svg) and as stacks with microseconds (.folded), which speedscope reads.

    \b
    Example:
      spacy-psa benchmark profile training/psa/model-best test.spacy --train train.spacy
    """
    from spacy_psa.laboratory.performance.flame import write_profiles
    from spacy_psa.laboratory.performance.sections import Plan

    plan = Plan(data, train, vectors, words, steps, batch, repeats)
    tables, paths = write_profiles(model, plan, output)
    print_markdown(tables)
    typer.echo(f"Written: {', '.join(paths)}")
