"""A record of `spacy_psa.laboratory.performance.sections` in Markdown, and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy_psa.analysis.figures import new_figure, save_figure
from spacy_psa.corpora.atomic import write_json, write_text

GIGA = 1e9


def markdown(record: dict[str, Any]) -> str:
    """Write a heading and a table for each section of a record."""
    parts = [
        _rates(record, "annotation", "Annotation", "words a second"),
        _rates(record, "training", "Training", "steps a second"),
        _loading(record),
        _memory(record),
        _growth(record, "lengths", "Sentence length", "words in a sentence"),
        _growth(record, "labels", "Number of tags", "tags"),
        _facts(record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def write(record: dict[str, Any], output: Path) -> str:
    """Write OUTPUT.json, OUTPUT.md and OUTPUT.png, and return the tables."""
    tables = markdown(record)
    write_json(output.with_name(f"{output.name}.json"), record, indent=1)
    write_text(output.with_name(f"{output.name}.md"), tables)
    draw(record, output.with_name(f"{output.name}.png"))
    return tables


def _rates(record: dict[str, Any], section: str, title: str, unit: str) -> str:
    if section not in record:
        return ""
    rows = record[section]["rows"]
    first = next(iter(rows))
    body = []
    for name, row in rows.items():
        wall, processor = row["per_second"], row["per_cpu_second"]
        body.append(
            [
                name,
                _number(wall["median"]),
                f"{_number(wall['lower'])} … {_number(wall['upper'])}",
                _number(processor["median"]),
                f"{_ratio(row, rows[first]):.2f}",
            ]
        )
    header = [unit, "median", "quartiles", "of processor time", f"× {first}"]
    return f"### {title}\n\n{_table(header, body)}"


def _ratio(row: dict[str, Any], other: dict[str, Any]) -> float:
    """How many times as fast as another row this one is; other processes do not change it."""
    return float(row["per_cpu_second"]["median"] / other["per_cpu_second"]["median"])


def _loading(record: dict[str, Any]) -> str:
    if "loading" not in record:
        return ""
    rows = record["loading"]["rows"]
    body = [
        [name, *(f"{1 / row[unit]['median']:.2f}" for unit in ("per_second", "per_cpu_second"))]
        for name, row in rows.items()
    ]
    header = ["to import spaCy and open the pipeline", "seconds", "of processor time"]
    return f"### Loading\n\n{_table(header, body)}"


def _memory(record: dict[str, Any]) -> str:
    if "memory" not in record:
        return ""
    body = []
    for name, row in record["memory"]["rows"].items():
        for kind, title in (("stream", "stream"), ("long", "one doc")):
            for run in row[kind]:
                body.append(
                    [
                        name,
                        title,
                        f"{run['words']:,}",
                        f"{run['loaded_bytes'] / GIGA:.2f}",
                        f"{run['peak_bytes'] / GIGA:.2f}",
                        f"{1e6 * run['seconds'] / run['words']:.0f}",
                    ]
                )
    header = ["", "", "words", "GB when open", "GB at most", "µs a word"]
    return f"### Memory\n\n{_table(header, body)}"


def _growth(record: dict[str, Any], section: str, title: str, unit: str) -> str:
    if section not in record or not record[section]["rows"]:
        return ""
    rows = record[section]["rows"]
    counts = list(next(iter(rows.values())))
    body = [
        [name, *(f"{1e6 / row[count]['per_cpu_second']['median']:.0f}" for count in counts)]
        for name, row in rows.items()
    ]
    header = [f"µs a word, by {unit}", *counts]
    return f"### {title}\n\n{_table(header, body)}"


def _facts(record: dict[str, Any]) -> str:
    machine, versions, settings = record["machine"], record["versions"], record["settings"]
    chosen = [f"{key} {value}" for key, value in settings.items()]
    used = [f"{name} {version}" for name, version in versions.items() if version]
    return (
        f"{record['date'][:10]}, {machine['cpu']}, {', '.join(chosen)}; {', '.join(used)}.\n\n"
        f"```bash\n{record['command']}\n```"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def draw(record: dict[str, Any], target: Path) -> None:
    """Draw the sections of a record into one picture.

    Annotation and training are bars; sentence lengths and numbers of tags are lines. Other sections
    are not drawn, and without any to draw no file is written.
    """
    bars = {"annotation": "words a second", "training": "steps a second"}
    lines = {"lengths": "words in a sentence", "labels": "tags"}
    shown = [name for name in (*bars, *lines) if record.get(name, {}).get("rows")]
    if not shown:
        return
    figure = new_figure(5.5 * len(shown), 4.0)
    grid = figure.subplots(1, len(shown), squeeze=False)
    for axes, name in zip(grid[0], shown):
        if name in bars:
            _bars(axes, record[name]["rows"], bars[name])
        else:
            _lines(axes, record[name]["rows"], lines[name])
    save_figure(figure, target)


def _bars(axes: Any, rows: dict[str, Any], unit: str) -> None:
    names = list(rows)
    rates = [rows[name]["per_cpu_second"] for name in names]
    middle = [rate["median"] for rate in rates]
    ends = [
        [rate["median"] - rate["least"] for rate in rates],
        [rate["most"] - rate["median"] for rate in rates],
    ]
    axes.barh(names, middle, xerr=ends, color="#4c78a8", ecolor="#333333", capsize=3)
    axes.invert_yaxis()
    axes.set_xlabel(f"{unit} of processor time; whiskers: all runs")
    axes.grid(axis="x", alpha=0.3)


def _lines(axes: Any, rows: dict[str, Any], unit: str) -> None:
    for name, row in rows.items():
        micros = [1e6 / rate["per_cpu_second"]["median"] for rate in row.values()]
        axes.plot([int(count) for count in row], micros, "o-", label=name)
    axes.set(xscale="log", ylim=(0, None), xlabel=unit, ylabel="µs a word")
    axes.set_xticks([int(count) for count in row], list(row))
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
