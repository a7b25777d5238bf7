"""`spacy-psa compare`: one or two pipelines and gold annotation, as one page of HTML."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.cli.console import print_table
from spacy_psa.cli.options import Gpu, JsonPath

if TYPE_CHECKING:
    from spacy_psa.studio.comparison.comparison import Step


def compare(
    gold: Annotated[Path, typer.Argument(metavar="GOLD.spacy", help="Gold documents.")],
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL_A [MODEL_B]", help="Folders or packages of pipelines."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "comparison.html"
    ),
    train: Annotated[
        Path | None,
        typer.Option(help="Training data of the models, to score unseen words separately."),
    ] = None,
    component: Annotated[
        str | None,
        typer.Option(help="Name of the component; by default the first crf_… of MODEL_A."),
    ] = None,
    json_path: JsonPath = None,
    gpu_id: Gpu = -1,
) -> None:
    """
    Compare pipelines with gold annotation.

    Writes one HTML file that needs no network: scores with intervals, the significance of the
    difference, confusion, calibration, F1 by length and by words seen in training, and every error
    in its sentence, with the probabilities of the gold and the predicted spans.

    Entities, chunks, nested spans and tags can be compared. spaCy's own components can as well;
    they have no probabilities.

    \b
    Example:
      spacy-psa compare test.spacy psa/model-best bilstm_crf/model-best -o report.html \\
          --train train.spacy
    """
    from spacy_psa.studio.server.compare_file import write_comparison

    report = write_comparison(models, gold, output, json_path, component, train, gpu_id, _with_bar)
    rows = []
    for i, model in enumerate(report["models"]):
        scores = report["scores"][0]["models"][i]
        low, high = (100 * bound for bound in scores["f"]["interval"])
        errors = sum(error["wrong"][i] for error in report["errors"])
        values = (f"{100 * scores[name]['value']:.2f}" for name in "prf")
        rows.append([model["name"], *values, f"{low:.2f} to {high:.2f}", f"{errors:,}"])
    print_table(["", "P", "R", "F1", "95% interval", "errors"], rows)
    if report["p_value"] is not None:
        typer.echo(f"The two differ in F1 with p = {report['p_value']:.4f} (permutation test).")
    typer.echo(f"Written: {', '.join(str(path) for path in (output, json_path) if path)}")


def _with_bar(steps: "Iterator[Step]", count: int) -> "Iterable[Step]":
    """Go through steps with a bar, if stderr is a terminal."""
    from rich.console import Console
    from rich.progress import track

    hidden = not sys.stderr.isatty()
    console = Console(stderr=True)
    return track(steps, "Comparing", count, console=console, transient=True, disable=hidden)
