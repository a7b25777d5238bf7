"""The peak memory of `spacy train`, corpus, model, optimizer and evaluation included.

usage: python benchmarks/training_memory.py OUT.json CONFIG.cfg TRAIN.spacy DEV.spacy \\
           [--steps N] [--paths.vectors FOLDER, or any other setting]

Trains for N steps with one evaluation at the end and writes `peak_bytes`, `steps` and
`seconds`. The weights are not kept.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from record import write_record


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("out", "config", "train", "dev"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--steps", type=int, default=6000)
    given, settings = parser.parse_known_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "spacy", "train", str(given.config), "--output", folder,
                "--paths.train", str(given.train), "--paths.dev", str(given.dev),
                "--training.max_steps", str(given.steps),
                "--training.eval_frequency", str(given.steps), *settings,
            ],
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"spacy train ended with {process.returncode}; its error is above")
    figures = {
        "config": str(given.config),
        "settings": settings,
        "steps": given.steps,
        "seconds": round(time.perf_counter() - started, 1),
        # Kilobytes, but bytes on a Mac.
        "peak_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }
    write_record(given.out, figures, [given.train, given.dev])
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
