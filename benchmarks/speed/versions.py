"""Time two installed versions of spacy-psa side by side, with random weights.

Each version has a process of its own. A round annotates the words of --data and takes training
steps with 10 documents each, first in one process, then in the other; every other round begins with
the second version. The first round does not count, so compiled code and the vectors of characters
are in their caches.

Results (kind "figures"): `versions` {"before" or "after": the version's name}, `steps`, and `rows`
{config: {"words" or "steps": {"before" or "after": [rate a second of each round], "ratio": the
median over rounds of after / before}}}.
"""

import json
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.record import FOLDER, write_record
from benchmarks.script import script_parser

WORKER = Path(__file__).with_name("version_worker.py")
UNITS = ("words", "steps")


class Worker:
    """A row in a process of its own, which stays open between rounds.

    Args:
        command: its command line; for each line of its input, the process does its work once and
            prints the rates as a JSON object.
        environment: its environment; None for that of this process.
    """

    def __init__(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=environment
        )

    def run(self) -> dict[str, float]:
        """Do the work once."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print("run", file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith("{"):
                found: dict[str, float] = json.loads(line)
                return found
        raise RuntimeError("the process ended; its error is above")

    def end(self) -> None:
        """End the process."""
        self.process.communicate()


def compare(pythons: dict[str, str], arguments: list[str], repeats: int) -> dict[str, Any]:
    """Run the versions in turn, `repeats` times after a first one that does not count."""
    workers = {name: Worker([python, str(WORKER), *arguments]) for name, python in pythons.items()}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
    for number in range(repeats + 1):
        for name in list(workers)[:: -1 if number % 2 else 1]:
            rates = workers[name].run()
            print(number, name, rates, flush=True)
            if number:
                found[name].append(rates)
    for worker in workers.values():
        worker.end()
    row: dict[str, Any] = {}
    for unit in UNITS:
        by_version = {name: [each[unit] for each in runs] for name, runs in found.items()}
        rounds = zip(by_version["before"], by_version["after"], strict=True)
        row[unit] = {**by_version, "ratio": median(after / before for before, after in rounds)}
        print(unit, row[unit]["ratio"], flush=True)
    return row


def main() -> None:
    options = script_parser("benchmarks.speed.versions", __doc__)
    options.add_argument("name", help="name of the record")
    options.add_argument("configs", nargs="+", metavar="[NAME=]CONFIG", help="training configs")
    for version in ("before", "after"):
        note = "interpreter of an environment with this version"
        options.add_argument(f"--{version}", required=True, metavar="PYTHON", help=note)
        options.add_argument(f"--{version}-version", required=True, metavar="NAME")
    for option in ("data", "train", "vectors"):
        options.add_argument(f"--{option}", required=True, type=Path)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", type=int, default=20)
    given = options.parse_args()
    pythons = {"before": given.before, "after": given.after}
    rows = {}
    for argument in given.configs:
        name, _, path = argument.rpartition("=")
        files = [path, str(given.data), str(given.train), str(given.vectors)]
        rows[name or Path(path).stem] = compare(pythons, [*files, str(given.steps)], given.rounds)
    versions = {"before": given.before_version, "after": given.after_version}
    write_record(
        FOLDER / "speed" / "results" / f"{given.name}.json",
        "speed",
        {"versions": versions, "steps": given.steps, "rows": rows},
        data=[given.data, given.train],
        note="One thread a process; random weights of one seed.",
    )


if __name__ == "__main__":
    main()
