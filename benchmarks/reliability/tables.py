"""The tables on the page of this experiment, and the numbers in its text."""

from benchmarks.tables import Records, file_link, table

TITLES = {"bilstm_crf": "`ner/bilstm_crf.cfg`, shortened", "parser": "`parser/sample.cfg`"}


def main_table(records: Records) -> str:
    body = []
    for name, title in TITLES.items():
        found = records[name]["results"]
        steps = ", ".join(str(kill["checkpoint"]) for kill in found["kills"])
        size = f"{found['files']} ({found['bytes'] / 1e6:.1f} MB)"
        differing = ", ".join(found["differing"]) or "0"
        body.append([title, str(found["steps"]), steps, size, differing, file_link(name)])
    header = [
        "config",
        "steps",
        "killed after the checkpoints of steps",
        "files compared",
        "files that differ",
        "record",
    ]
    return table(header, body)


TABLES = {"main": main_table}


def _counts(records: Records) -> tuple[int, int]:
    found = [records[name]["results"] for name in TITLES]
    return sum(len(each["kills"]) for each in found), sum(len(each["differing"]) for each in found)


def headline(records: Records) -> str:
    kills, differing = _counts(records)
    return f"{kills} kills, {differing} files that differ"


def claims(records: Records) -> list[str]:
    kills, differing = _counts(records)
    every = {records[name]["results"]["save_every"] for name in TITLES}
    return [f"After {kills} kills, {differing} files differ", f"every {every.pop()} steps"]
