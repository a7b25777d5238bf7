"""The tables on the page of this experiment, and the numbers in its text."""

from statistics import mean, stdev
from typing import Any

from benchmarks.tables import Records, file_link, percent, table

STRATEGIES = ("random", "entropy", "spans")
SYSTEMS = {"crf_ner": "`crf_ner`", "spacy": "spaCy's `ner`"}
Row = dict[str, Any]


def by_round(records: Records, strategy: str) -> list[list[Row]]:
    """The rows of each round, one of each seed."""
    runs = [
        record["results"]["rounds"]
        for name, record in sorted(records.items())
        if name.rpartition("-")[0] == strategy
    ]
    return [list(rows) for rows in zip(*runs)]


def spread(values: list[float]) -> str:
    """The mean, with the standard deviation where there are several."""
    return percent(mean(values)) + (f" ± {100 * stdev(values):.2f}" if len(values) > 1 else "")


def scores(rows: list[Row], system: str, part: str) -> list[float]:
    """The F1 of a system in a round, for each seed."""
    return [row[system][part]["ents_f"] for row in rows if system in row]


def _cells(rows: list[Row]) -> list[str]:
    found = []
    for system in SYSTEMS:
        for part in ("dev", "test"):
            values = scores(rows, system, part)
            found.append(spread(values) if values else "")
    return found


def curves(records: Records) -> str:
    body = []
    for strategy in (*STRATEGIES, "all"):
        for rows in by_round(records, strategy):
            body.append(
                [
                    strategy,
                    f"{100 * rows[0]['share']:g} %",
                    f"{mean(row['sentences'] for row in rows):,.0f}",
                    f"{mean(row['decisions'] for row in rows):,.0f}",
                    str(len(rows)),
                    *_cells(rows),
                ]
            )
    header = ["asks for", "tokens seen", "sentences", "decisions", "seeds"]
    header += [f"{title} {part} F1" for title in SYSTEMS.values() for part in ("dev", "test")]
    return table(header, body)


def runs(records: Records) -> str:
    names = sorted(records)
    return table(["run", "record"], [[name, file_link(name)] for name in names])


TABLES = {"curves": curves, "runs": runs}


def enough(records: Records, strategy: str) -> Row | None:
    """The first round within a point of all sentences, on development data."""
    (whole,) = by_round(records, "all")
    aim = mean(scores(whole, "crf_ner", "dev")) - 0.01
    for rows in by_round(records, strategy):
        if mean(scores(rows, "crf_ner", "dev")) >= aim:
            return {
                "share": rows[0]["share"],
                "decisions": mean(row["decisions"] for row in rows),
                "test": mean(scores(rows, "crf_ner", "test")),
            }
    return None


def headline(records: Records) -> str:
    found = enough(records, "entropy")
    if found is None:
        return "no share reaches all sentences minus a point"
    return f"all sentences minus a point with {100 * found['share']:g} % of the tokens seen"


def claims(records: Records) -> list[str]:
    said = []
    for strategy in STRATEGIES:
        found = enough(records, strategy) if by_round(records, strategy) else None
        if found:
            said.append(f"{strategy}: {100 * found['share']:g} % of the tokens")
    return said
