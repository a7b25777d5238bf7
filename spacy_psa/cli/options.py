"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from spacy_psa.annotation.input import InputFormat

Engine = Literal["local", "ray"]
"""The place of the processes."""
TrainingEngine = Annotated[
    Engine, typer.Option(help="local, or ray for tasks on this machine or a cluster.")
]
Jobs = Annotated[int, typer.Option(help="Number of trainings at a time; -1 for one per core.")]
Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="Folder or installed package of a pipeline.")
]
Gpu = Annotated[int, typer.Option(min=-1, help="Number of the GPU; -1 for the CPU.")]
TrainingGpu = Annotated[
    int, typer.Option("--gpu-id", "-g", min=-1, help="Number of the GPU; -1 for the CPU.")
]
Pipe = Annotated[str | None, typer.Option(help="Name of the component, if there are several.")]
Address = Annotated[
    str | None,
    typer.Option(
        help="Address of a Ray cluster, or auto. By default that of RAY_ADDRESS, or else Ray is "
        "started on this machine."
    ),
]
Task = Literal["ner", "chunker", "tagger", "parser", "spans"]
"""The annotation to learn."""
Lang = Annotated[str, typer.Option(help="Language code, as for spacy.blank.")]
Label = Annotated[
    str, typer.Option(help="Label of entities whose tags have none, such as B and I.")
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        help="Label to keep (PER), to rename (person=PER), or names of numbered tags "
        "(O,B-PER,I-PER); repeat it. A single label is that of tags without one, such as B and I."
    ),
]
Vectors = Annotated[
    str | None, typer.Option(help="Pipeline with word vectors, of `spacy init vectors`.")
]
Output = Annotated[Path, typer.Option(help="Path of the output files, without the ending.")]
JsonPath = Annotated[Path | None, typer.Option("--json", help="JSON file for all figures.")]

Source = Annotated[Path, typer.Argument(metavar="INPUT", help='File to read; "-" for stdin.')]
Format = Annotated[
    InputFormat,
    typer.Option(
        help="Format of INPUT: text has one document on each line, tokens one sentence with blanks "
        "between its tokens, conll one token; auto goes by the name."
    ),
]
TextKey = Annotated[str, typer.Option(help="Key of the text in a JSON line.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Number of documents in a batch.")]
NProcess = Annotated[int, typer.Option(min=-1, help="Number of processes; -1 for one per core.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip malformed lines and count them.")]
