"""Check the properties of tests/reliability on many cases, which are the same in each run.

Results (kind "figures"): `asked`, the number of cases from the command line; `cases`, the number of
checked cases; `failed`, the names of the properties that failed; `seconds`; `properties`, for each
property its `cases` and `seconds`.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.record import write_record
from benchmarks.script import script_parser

TESTS = Path(__file__).parents[2] / "tests" / "reliability"


def measure(cases: int) -> dict[str, Any]:
    """The figures of a run of pytest in this process."""
    os.environ["SPACY_PSA_CASES"] = str(cases)
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        options = ["-v", "-p", "no:cacheprovider", "-k", "not damaged", f"--junitxml={report}"]
        pytest.main([*options, str(TESTS)])
        return {"asked": cases, **read_report(ElementTree.parse(report))}


def read_report(report: "ElementTree.ElementTree[Any]") -> dict[str, Any]:
    """The figures in a report of pytest."""
    properties, failed = {}, []
    for test in report.iter("testcase"):
        name = test.attrib["name"]
        noted = {each.attrib["name"]: each.attrib["value"] for each in test.iter("property")}
        properties[name] = {
            "cases": int(noted.get("cases", 0)),
            "seconds": round(float(test.attrib["time"]), 1),
        }
        if test.find("failure") is not None or test.find("error") is not None:
            failed.append(name)
    return {
        "cases": sum(each["cases"] for each in properties.values()),
        "failed": failed,
        "seconds": round(sum(each["seconds"] for each in properties.values()), 1),
        "properties": properties,
    }


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    options.add_argument("--cases", type=int, default=10_000, help="number of cases (10,000)")
    given = options.parse_args()
    write_record(given.out, "reliability", measure(given.cases))


if __name__ == "__main__":
    main()
