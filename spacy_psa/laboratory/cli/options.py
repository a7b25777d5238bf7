"""Arguments and options that several commands have."""

from typing import Annotated

import typer

from spacy_psa.cli.options import Engine

Jobs = Annotated[int, typer.Option(help="Number of trainings at a time; -1 for one per core.")]
TrainingEngine = Annotated[
    Engine, typer.Option(help="local, or ray for tasks on this machine or a cluster.")
]
