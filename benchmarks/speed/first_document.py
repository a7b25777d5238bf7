"""Measure how long the first document waits for compiled kernels, after an install and later.

Kernels are compiled on their first use and cached on disk. Each model annotates a document in a new
process with an empty cache, and then in a second process with the cache of the first. The time does
not include opening the pipeline.

Results (kind "figures"): `models` {path: {`runs`: [{`first`: seconds of the first document with an
empty cache, `second`: with the cache, `then`: of a further document in the second process}]}}.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.record import write_record
from benchmarks.script import script_parser

TEXT = "Ada Lovelace met Charles Babbage in London ."
REPEATS = 3


def here(model: str) -> None:
    """Print the seconds of two documents as JSON."""
    import time

    import spacy
    import torch

    torch.set_num_threads(1)
    nlp = spacy.load(model)
    seconds = []
    for text in (TEXT, f"{TEXT} {TEXT}"):
        start = time.perf_counter()
        nlp(text)
        seconds.append(time.perf_counter() - start)
    print(json.dumps(seconds))


def elsewhere(model: str, cache: str) -> list[float]:
    """Run `here` in a new process whose compiled code is in the folder `cache`."""
    command = [sys.executable, "-m", "benchmarks.speed.first_document", "--here", "-", model]
    env = {**os.environ, "NUMBA_CACHE_DIR": cache}
    printed = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    seconds: list[float] = json.loads(printed.splitlines()[-1])
    return seconds


def measure(model: str) -> dict[str, Any]:
    runs = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as cache:
            first, second = elsewhere(model, cache), elsewhere(model, cache)
        runs.append({"first": first[0], "second": second[0], "then": second[1]})
    return {"runs": [{k: round(v, 4) for k, v in run.items()} for run in runs]}


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    options.add_argument("models", nargs="+", metavar="MODEL")
    options.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.here:
        here(*given.models)
        return
    models = {model: measure(model) for model in given.models}
    print(json.dumps(models, indent=2))
    write_record(given.out, "speed", {"models": models})


if __name__ == "__main__":
    main()
