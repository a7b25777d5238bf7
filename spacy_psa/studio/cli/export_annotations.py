"""`spacy-psa export-annotations`: from a file of decisions to training data."""

from pathlib import Path
from typing import Annotated

import typer

from spacy_psa.studio.active_learning.export_format import ExportFormat


def export_annotations(
    source: Annotated[
        Path, typer.Argument(metavar="FILE.sqlite", help="File of decisions of `serve --annotate`.")
    ],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="File to write.")],
    form: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            help="docbin (.spacy), jsonl (.jsonl), label-studio (.json) or doccano; auto goes by "
            "the name.",
        ),
    ] = ExportFormat.auto,
    annotator: Annotated[
        str | None,
        typer.Option(help="Whose decisions count; without it, those on which all agree."),
    ] = None,
) -> None:
    """
    Write the decisions of annotators as training data.

    FILE is that of `serve --annotate`. docbin and jsonl keep undecided tokens as missing, and
    rejected spans as wrong. Label Studio and doccano have no form for that: texts that are decided
    in part are left out for them, and counted. Spans on which annotators disagree are missing, and
    counted.

    \b
    Example:
      spacy-psa export-annotations names.sqlite train.spacy
    """
    from spacy_psa.studio.active_learning.export import export, resolve_export_format
    from spacy_psa.studio.active_learning.store import open_store

    resolve_export_format(output, form)
    with open_store(source, reading=True) as store:
        counts = export(store, output, form, annotator)
    typer.echo(f"{output}: {counts.summary}")
