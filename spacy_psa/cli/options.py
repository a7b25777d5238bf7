"""Arguments and options that several commands have."""

from enum import Enum
from typing import Annotated

import typer


class Engine(str, Enum):
    """What the processes run on."""

    local = "local"
    ray = "ray"


Address = Annotated[
    str | None,
    typer.Option(
        help="Address of a Ray cluster, or auto. Without one, that of RAY_ADDRESS is taken, or Ray "
        "is started on this machine."
    ),
]
