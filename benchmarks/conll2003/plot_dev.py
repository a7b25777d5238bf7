"""Draw the development F1 of recorded trainings against epochs."""

import argparse
from pathlib import Path

from benchmarks.record import read_record
from benchmarks.tables import dev_rows
from spacy_psa.analysis.figures import check_matplotlib
from spacy_psa.corpora.atomic import atomic_path


def plot(target: Path, records: list[Path]) -> None:
    """Write a picture with a line for each record; a dot marks its best epoch.

    Args:
        target: the PNG file.
        records: result files of trainings.

    Raises:
        InputError: if a record is not in the format, or the picture cannot be written.
    """
    check_matplotlib()
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for path in records:
        dev = dev_rows(read_record(path))
        scores = [100 * row["score"] for row in dev]
        best = max(range(len(scores)), key=scores.__getitem__)
        (line,) = axes.plot([row["epoch"] for row in dev], scores, label=path.stem)
        axes.plot(dev[best]["epoch"], scores[best], "o", color=line.get_color())
    axes.set(xlabel="epochs", ylabel="development F1", ylim=(92, None))
    axes.set_title("The dot marks the best epoch")
    axes.grid(alpha=0.3)
    axes.legend()
    with atomic_path(target) as temporary:
        figure.savefig(temporary, format="png", dpi=120)
    pyplot.close(figure)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.conll2003.plot_dev", description=__doc__
    )
    found.add_argument("target", type=Path, metavar="OUT.png")
    found.add_argument("records", type=Path, nargs="+", metavar="RECORD.json")
    return found


def main() -> None:
    given = parser().parse_args()
    plot(given.target, given.records)
    print(f"Written: {given.target}")


if __name__ == "__main__":
    main()
