"""A callback for `spacy-psa train --code` that records when steps begin.

Before each update, a process writes the time and its process ID to FOLDER/RANK.jsonl.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.util import registry

NAME = "benchmarks.step_times.v1"


@registry.callbacks(NAME)
def step_times(folder: str) -> Callable[[Language, dict[str, Any]], None]:
    """Make the callback."""
    path = Path(folder) / f"{os.environ.get('RANK', '0')}.jsonl"

    def note(nlp: Language, step: dict[str, Any]) -> None:
        line = {"step": step["step"], "seconds": time.perf_counter(), "process": os.getpid()}
        with path.open("a", encoding="utf8") as file:
            file.write(f"{json.dumps(line)}\n")

    return note
