"""Draw the development F1 of recorded runs against epochs.

usage: python benchmarks/plot_dev.py OUT.png RESULT.json [RESULT.json ...]
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot


def plot(target: Path, results: list[Path]) -> None:
    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for path in results:
        dev = [row for row in json.loads(path.read_text(encoding="utf8"))["dev"] if row["step"]]
        scores = [100 * row["score"] for row in dev]
        best = max(range(len(scores)), key=scores.__getitem__)
        (line,) = axes.plot([row["epoch"] for row in dev], scores, label=path.stem)
        axes.plot(dev[best]["epoch"], scores[best], "o", color=line.get_color())
    axes.set(xlabel="epochs", ylabel="development F1", ylim=(92, None))
    axes.set_title("The dot marks the best epoch")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(target, dpi=120)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    plot(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
