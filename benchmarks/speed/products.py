"""Measure how fast one thread of this processor multiplies matrices in float32.

A pipeline cannot be faster than that. The figure is the best of 300 runs of
`torch.nn.functional.linear` for the sizes of the layers of PSA, d = 300 and 600, with a training
batch (145 rows, ten sentences) and in annotation (2,048 rows).

Results (kind "figures"): `multiplications_e9` {"ROWS x WIDTH": 10^9 multiplications a second, half
of GFLOP/s}.
"""

import json
from timeit import repeat

import torch
from torch.nn.functional import linear

from benchmarks.record import write_record
from benchmarks.script import script_parser

RUNS = 300


def best(rows: int, width: int) -> float:
    """10^9 multiplications a second of (rows, width) times (width, width), in the fastest run."""
    x, weights = torch.randn(rows, width), torch.randn(width, width)
    seconds = min(repeat(lambda: linear(x, weights), number=1, repeat=RUNS))
    return rows * width * width / seconds / 1e9


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    given = options.parse_args()
    torch.set_num_threads(1)
    with torch.inference_mode():
        rates = {f"{n} x {d}": round(best(n, d), 1) for n in (145, 2048) for d in (300, 600)}
    print(json.dumps(rates, indent=2))
    write_record(given.out, "speed", {"multiplications_e9": rates})


if __name__ == "__main__":
    main()
