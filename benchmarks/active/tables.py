"""The tables on the page of this experiment, and the numbers in its text."""

from statistics import mean
from typing import Any

from benchmarks.tables import Records, file_link, percent, spread, table

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


def scores(rows: list[Row], system: str, part: str) -> list[float]:
    """The F1 of a system in a round, for each seed."""
    return [row[system][part]["ents_f"] for row in rows if system in row]


def curves(records: Records) -> str:
    asked = {strategy: by_round(records, strategy) for strategy in (*STRATEGIES, "all")}
    every = [rows for rounds in asked.values() for rows in rounds]
    systems = [system for system in SYSTEMS if any(scores(rows, system, "dev") for rows in every)]
    columns = [(system, part) for system in systems for part in ("dev", "test")]
    body = [
        [
            strategy,
            f"{100 * rows[0]['share']:g} %",
            f"{mean(row['sentences'] for row in rows):,.0f}",
            f"{mean(row['tokens_decided'] for row in rows):,.0f}",
            f"{mean(row['decisions'] for row in rows):,.0f}",
            str(len(rows)),
            *(spread(scores(rows, *column)) for column in columns),
        ]
        for strategy, rounds in asked.items()
        for rows in rounds
    ]
    header = ["asks for", "tokens seen", "sentences", "tokens decided", "decisions", "seeds"]
    header += [f"{SYSTEMS[system]} {part} F1" for system, part in columns]
    return table(header, body)


def runs(records: Records) -> str:
    names = sorted(records)
    return table(["run", "record"], [[name, file_link(name)] for name in names])


def enough(records: Records, strategy: str) -> Row | None:
    """The first round within a point of all sentences, on development data."""
    (whole,) = by_round(records, "all")
    aim = mean(scores(whole, "crf_ner", "dev")) - 0.01
    for rows in by_round(records, strategy):
        if mean(scores(rows, "crf_ner", "dev")) >= aim:
            return {
                "seen": mean(row["tokens_seen"] for row in rows) / whole[0]["tokens_seen"],
                "decided": mean(row["tokens_decided"] for row in rows) / whole[0]["tokens_seen"],
                "decisions": mean(row["decisions"] for row in rows),
                "of_all": mean(row["decisions"] for row in rows) / whole[0]["decisions"],
                "dev": mean(scores(rows, "crf_ner", "dev")),
                "test": mean(scores(rows, "crf_ner", "test")),
            }
    return None


def enough_table(records: Records) -> str:
    body = []
    for strategy in STRATEGIES:
        found = enough(records, strategy)
        if found:
            body.append(
                [
                    strategy,
                    f"{100 * found['seen']:.0f} %",
                    f"{100 * found['decided']:.1f} %",
                    f"{found['decisions']:,.0f} ({100 * found['of_all']:.0f} %)",
                    percent(found["dev"]),
                    percent(found["test"]),
                ]
            )
        elif by_round(records, strategy):
            body.append([strategy, "more than 35 %", "", "", "", ""])
    header = ["asks for", "tokens seen", "tokens decided", "decisions", "dev F1", "test F1"]
    return table(header, body)


TABLES = {"curves": curves, "enough": enough_table, "runs": runs}


def headline(records: Records) -> str:
    found = enough(records, "spans")
    if found is None:
        return "no share comes within a point of the dev F1 of all sentences"
    return (
        f"`spans` comes within a point of the dev F1 of all sentences with "
        f"{100 * found['of_all']:.0f} % of the decisions"
    )


def claims(records: Records) -> list[str]:
    found = enough(records, "spans")
    return (
        []
        if found is None
        else [
            f"`spans` is there after {found['decisions']:,.0f} decisions, "
            f"{100 * found['of_all']:.0f} % of those for all sentences"
        ]
    )
