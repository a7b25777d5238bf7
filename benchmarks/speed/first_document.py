"""How long the first document waits for compiled kernels: after an install, and later.

usage: python benchmarks/first_document.py OUT.json MODEL [MODEL ...]

Kernels are compiled when they are first used and kept on disk. Each model annotates one
document in a new process with an empty cache, and then in a second one with what the first
left there. `first` and `second` are the seconds of that document, pipeline open; the second
document of each process is timed as well, and is what there is to do.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from record import write_record

TEXT = "Ada Lovelace met Charles Babbage in London ."
REPEATS = 3


def here(model: str) -> None:
    """Print the seconds of two documents, as JSON."""
    import time

    import spacy
    import torch

    torch.set_num_threads(1)
    nlp = spacy.load(model)
    found = []
    for text in (TEXT, f"{TEXT} {TEXT}"):
        start = time.perf_counter()
        nlp(text)
        found.append(time.perf_counter() - start)
    print(json.dumps(found))


def elsewhere(model: str, cache: str) -> list[float]:
    """`here`, in a new process whose compiled code is in the folder `cache`."""
    done = subprocess.run(
        [sys.executable, __file__, "--here", "-", model],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(model: str) -> dict[str, Any]:
    runs = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as cache:
            first, second = elsewhere(model, cache), elsewhere(model, cache)
        runs.append({"first": first[0], "second": second[0], "then": second[1]})
    return {"runs": [{k: round(v, 4) for k, v in run.items()} for run in runs]}


def main(arguments: argparse.Namespace) -> None:
    if arguments.here:
        here(*arguments.models)
        return
    models = {model: measure(model) for model in arguments.models}
    write_record(arguments.out, {"models": models})
    print(json.dumps(models, indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    main(parser.parse_args())
