"""Draw the development F1 of recorded trainings against epochs."""

from pathlib import Path

from benchmarks.record import read_record
from benchmarks.script import script_parser
from spacy_psa.analysis.figures import check_matplotlib
from spacy_psa.corpora.atomic import atomic_path


def plot(target: Path, records: list[Path]) -> None:
    """Write a picture with a line for each record of a training; a dot marks its best epoch."""
    check_matplotlib()
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for path in records:
        dev = [row for row in read_record(path)["results"]["dev"] if row["step"]]
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


def main() -> None:
    options = script_parser(globals())
    options.add_argument("target", type=Path, metavar="OUT.png")
    options.add_argument("records", type=Path, nargs="+", metavar="RECORD.json")
    given = options.parse_args()
    plot(given.target, given.records)
    print(f"Written: {given.target}")


if __name__ == "__main__":
    main()
