"""Measure the peak memory of `spacy train`, including corpus, model, optimizer and evaluation.

Trains for N steps with one evaluation at the end, and discards the weights. Further options, such
as `--paths.vectors FOLDER`, are settings of the config.

Results (kind "figures"): `config`, its path; `settings`, the further options; `steps`; `seconds`;
`peak_bytes`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.record import write_record
from benchmarks.script import script_parser


def main() -> None:
    options = script_parser(globals(), "OUT.json", "CONFIG.cfg", "TRAIN.spacy", "DEV.spacy")
    options.add_argument("--steps", type=int, default=6000, help="training steps (6000)")
    given, settings = options.parse_known_args()
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
    print(json.dumps(figures, indent=2))
    write_record(given.out, "memory", figures, data=[given.train, given.dev])


if __name__ == "__main__":
    main()
