"""Check the properties of tests/reliability on many cases.

The tests take their number of cases from SPACY_PSA_CASES. The cases are the same in each run.

Results (kind "figures"): `asked`, the number of cases that was asked for; `cases`, the number that
was checked; `failed`, the names of the properties that failed; `seconds`; `properties`, for each
property its `cases` and `seconds`.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

from benchmarks.record import write_record

TESTS = Path(__file__).parents[2] / "tests" / "reliability"


def measure(cases: int, processes: int) -> dict[str, Any]:
    """Run the properties by pytest, in several processes; the figures."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS)]
        subprocess.run(
            [*command, "-n", str(processes), "-k", "not damaged", f"--junitxml={report}"],
            env={**os.environ, "SPACY_PSA_CASES": str(cases)},
            check=False,
        )
        if not report.exists():
            sys.exit("pytest has written no report; see its output above")
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


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.reliability.text",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("out", type=Path, metavar="OUT.json")
    found.add_argument("--cases", type=int, default=10_000, help="number of cases (10,000)")
    found.add_argument("--processes", type=int, default=1, help="properties at a time (1)")
    return found


def main() -> None:
    given = parser().parse_args()
    write_record(given.out, "reliability", measure(given.cases, given.processes))


if __name__ == "__main__":
    main()
