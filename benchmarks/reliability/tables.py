"""The tables on the page of this experiment, and the numbers in its text."""

from collections import Counter
from typing import Any

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


def text_table(records: Records) -> str:
    found = records["text"]["results"]
    body = [
        [_said(name), f"{each['cases']:,}", "failed" if name in found["failed"] else "holds"]
        for name, each in found["properties"].items()
    ]
    total = "all hold" if not found["failed"] else f"{len(found['failed'])} failed"
    body.append(["all", f"{found['cases']:,}", f"{total} ({file_link('text')})"])
    return table(["property", "cases", ""], body)


def _said(test: str) -> str:
    return test.removeprefix("test_").replace("_", " ")


OUTCOMES = {
    "same": ["same", "repaired"],
    "one error line": ["error"],
    "other sentences, warned": ["warned", "fewer, warned"],
    "other sentences": ["changed"],
    "fewer sentences": ["fewer"],
    "traceback, or a file left": ["traceback", "left", "unclear"],
}


def mutations_table(records: Records) -> str:
    found = records["mutations"]["results"]
    body = []
    for name, each in found.items():
        counts = _outcomes(each)
        sums = [sum(counts[key] for key in keys) for keys in OUTCOMES.values()]
        body.append([f"`{name}`", f"{each['files']:,}", *(f"{count:,}" for count in sums)])
    return table(["format", "files", *OUTCOMES], body)


def _outcomes(each: dict[str, Any]) -> Counter[str]:
    return sum((Counter(counts) for counts in each["outcomes"].values()), Counter[str]())


def _bad(records: Records) -> tuple[int, int]:
    """The number of damaged files, and of those with a traceback or the like."""
    found = records["mutations"]["results"].values()
    return sum(each["files"] for each in found), sum(len(each["bad"]) for each in found)


TABLES = {"main": main_table, "text": text_table, "mutations": mutations_table}


def _counts(records: Records) -> tuple[int, int]:
    found = [records[name]["results"] for name in TITLES]
    return sum(len(each["kills"]) for each in found), sum(len(each["differing"]) for each in found)


def headline(records: Records) -> str:
    kills, differing = _counts(records)
    text, (files, bad) = records["text"]["results"], _bad(records)
    return (
        f"{kills} kills, {differing} files that differ; {text['cases']:,} cases of text, "
        f"{len(text['failed'])} properties that fail; {files:,} damaged files, {bad} tracebacks"
    )


def claims(records: Records) -> list[str]:
    kills, differing = _counts(records)
    every = {records[name]["results"]["save_every"] for name in TITLES}
    files, bad = _bad(records)
    fewer = [_outcomes(each)["fewer"] for each in records["mutations"]["results"].values()]
    return [
        f"After {kills} kills, {differing} files differ",
        f"every {every.pop()} steps",
        f"Of {files:,} damaged files, {bad} end in a traceback",
        f"Fewer sentences without a warning come of {sum(fewer)} files",
    ]
