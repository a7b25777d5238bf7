"""The table on the page of this experiment, and the numbers in its text."""

from collections.abc import Mapping
from typing import Any

from benchmarks.accuracy_speed.systems import OWN, SYSTEMS
from benchmarks.tables import Records, dev_rows, number, percent, rate, table, test_f


def words_per_second(record: Mapping[str, Any]) -> dict[str, float]:
    """The median words a second of processor time, by row."""
    return {name: rate(row) for name, row in record["results"]["annotation"]["rows"].items()}


def main_table(records: Records) -> str:
    rates = words_per_second(records["speed"])
    body = []
    for name, system in sorted(SYSTEMS.items(), key=lambda row: -test_f(row[1].read())):
        link = f"[{system.record}.json](../{system.experiment}/results/{system.record}.json)"
        body.append([system.title, percent(test_f(system.read())), number(rates[name]), link])
    return table(["system", "test F1", "words a second", "record of the F1"], body)


TABLES = {"main": main_table}


def headline(records: Records) -> str:
    spacy = {name: system for name, system in SYSTEMS.items() if system.experiment == OWN}
    scores = [f"{percent(test_f(records[name]))} ({row.title})" for name, row in spacy.items()]
    best = max(test_f(system.read()) for name, system in SYSTEMS.items() if name not in spacy)
    return f"CoNLL-2003 test F1 {percent(best)} beside {' and '.join(scores)}"


def claims(records: Records) -> list[str]:
    words = records["speed"]["results"]["annotation"]["words"]
    found = [f"on the {words:,} words of the test set"]
    for name in ("spacy-efficiency", "spacy-accuracy"):
        last = max(row["step"] for row in dev_rows(records[name]))
        best = records[name]["results"]["best"]["step"]
        found.append(f"spaCy's patience of {last - best:,} steps ended both trainings")
    return found
