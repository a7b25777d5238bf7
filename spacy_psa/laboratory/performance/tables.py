"""Writes a record of `spacy_psa.laboratory.performance.sections` as Markdown."""

from collections.abc import Sequence
from typing import Any

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
    """Tell how many times as fast as another row this one is, in processor time.

    Other processes do not change processor time.
    """
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
    told = [f"{key} {value}" for key, value in settings.items()]
    used = [f"{name} {version}" for name, version in versions.items() if version]
    return (
        f"{record['date'][:10]}, {machine['cpu']}, {', '.join(told)}; {', '.join(used)}.\n\n"
        f"```bash\n{record['command']}\n```"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
