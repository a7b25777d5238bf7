"""`spacy-psa compare`: one or two pipelines beside gold annotation, as one page of HTML."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_psa.errors import InputError

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
        typer.Option(help="Training data of the models, to tell words that were seen from others."),
    ] = None,
    component: Annotated[
        str | None,
        typer.Option(help="Name of the component; by default the first crf_… of MODEL_A."),
    ] = None,
    json_path: Annotated[
        Path | None, typer.Option("--json", help="JSON file for all figures and errors.")
    ] = None,
    gpu_id: Annotated[int, typer.Option(min=-1, help="Number of the GPU; -1 for the CPU.")] = -1,
) -> None:
    """
    Compare pipelines with gold annotation, and browse their errors.

    Writes one HTML file that needs no network: scores with intervals, the significance of the
    difference, confusion, calibration, F1 by length and by words seen in training, and every error
    in its sentence, with the probabilities of the gold and the predicted spans.

    Entities, chunks and tags can be compared. spaCy's own components can, too; they have no
    probabilities.

    \b
    Example:
      spacy-psa compare test.spacy psa/model-best bilstm_crf/model-best -o report.html \\
          --train train.spacy
    """
    from spacy_psa.corpora.atomic import atomic_path
    from spacy_psa.loading import load_pipeline
    from spacy_psa.studio.cli.serve import model_names
    from spacy_psa.studio.comparison.comparison import Comparison
    from spacy_psa.studio.server.compare_file import comparison_page

    paths = model_names(models)
    if len(paths) > 2:
        raise InputError(f"there are {len(paths)} models: give one or two")
    if json_path is not None and json_path.resolve() == output.resolve():
        raise InputError(f"{output}: is the page and the JSON file; give two names")
    pipelines = {name: load_pipeline(path, gpu_id) for name, path in paths.items()}
    comparison = Comparison(pipelines, gold, component, train)
    # From here on it takes time, so a file that cannot be written is found before.
    with atomic_path(output) as temporary:
        for _, step in _with_bar(comparison.steps(), len(comparison)):
            step()
        report = comparison.report()
        temporary.write_text(comparison_page(report), encoding="utf8")
        if json_path is not None:
            with atomic_path(json_path) as other:
                other.write_text(json.dumps(report, ensure_ascii=False) + "\n", encoding="utf8")
    _print(report)
    typer.echo(f"Written: {', '.join(str(path) for path in (output, json_path) if path)}")


def _with_bar(steps: "Iterable[Step]", count: int) -> "Iterable[Step]":
    """Go through steps with a bar, if stderr is a terminal."""
    from rich.console import Console
    from rich.progress import track

    hidden = not sys.stderr.isatty()
    console = Console(stderr=True)
    return track(steps, "Comparing", count, console=console, transient=True, disable=hidden)


def _print(report: dict[str, Any]) -> None:
    """Print the scores of all types."""
    from rich.console import Console
    from rich.table import Table

    table = Table("", "P", "R", "F1", "95% interval", "errors")
    for i, model in enumerate(report["models"]):
        scores = report["scores"][0]["models"][i]
        low, high = (100 * bound for bound in scores["f"]["interval"])
        errors = sum(error["wrong"][i] for error in report["errors"])
        values = (f"{100 * scores[name]['value']:.2f}" for name in "prf")
        table.add_row(model["name"], *values, f"{low:.2f} to {high:.2f}", f"{errors:,}")
    Console().print(table)
    if report["p_value"] is not None:
        typer.echo(f"The two differ in F1 with p = {report['p_value']:.4f} (permutation test).")
