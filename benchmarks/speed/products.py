"""How fast one thread of this processor multiplies matrices in float32, which bounds the rest.

usage: python benchmarks/products.py OUT.json

The best of many runs of `torch.nn.functional.linear` at the sizes of PSA's layers, d = 300 and
600, for a training batch (145 rows, ten sentences) and for annotation (2,048 rows), in units of
10^9 multiplications a second (half of GFLOP/s).
"""

import json
import sys
from pathlib import Path
from timeit import repeat

import torch
from record import write_record
from torch.nn.functional import linear

RUNS = 300


def best(rows: int, width: int) -> float:
    """10^9 multiplications a second of (rows, width) times (width, width), in the fastest run."""
    x, weights = torch.randn(rows, width), torch.randn(width, width)
    seconds = min(repeat(lambda: linear(x, weights), number=1, repeat=RUNS))
    return rows * width * width / seconds / 1e9


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    with torch.inference_mode():
        found = {f"{n} x {d}": round(best(n, d), 1) for n in (145, 2048) for d in (300, 600)}
    write_record(Path(sys.argv[1]), {"multiplications_e9": found})
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
