"""The tables on the page of this experiment, and the numbers in its text."""

from benchmarks.tables import Records, percent, table

TASKS = {"confidence": "confidences", "nbest": "the 10 best analyses"}


def main_table(records: Records) -> str:
    rows = []
    for path, found in records["cost"]["results"]["models"].items():
        for key, title in TASKS.items():
            cost = found["cost"][key]
            spread = f"{percent(cost['least'], 1)} … {percent(cost['most'], 1)}"
            bound = percent(cost["bound"], 0)
            name = path.removeprefix("training/").removesuffix("/model-best")
            rows.append([f"`{name}`", title, percent(cost["median"], 1), spread, bound])
    header = [
        "pipeline",
        "task",
        "cost in percent of Viterbi alone",
        "least … most",
        "aim, at most",
    ]
    return table(header, rows)


TABLES = {"main": main_table}


def headline(records: Records) -> str:
    found = records["cost"]["results"]["models"]
    (psa,) = [each["cost"] for path, each in found.items() if "psa" in path]
    return (
        f"confidences cost {percent(psa['confidence']['median'], 1)}%, the 10 best analyses "
        f"{percent(psa['nbest']['median'], 1)}% with PSA"
    )


def claims(records: Records) -> list[str]:
    (words,) = {each["words"] for each in records["cost"]["results"]["models"].values()}
    return [f"{words:,} words"]
