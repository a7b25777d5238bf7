"""Time two installed versions of spacy-psa side by side, with random weights.

Each version has a process of its own. A round annotates the words of --data and makes training
steps with 10 documents each, first in one process, then in the other; every other round begins with
the second version. The first round, which fills the caches, does not count.

Results (kind "figures"): `versions` {"before" or "after": the version's name}, `steps`, and `rows`
{config: {"words" or "steps": {"before" or "after": [rate a second of each round], "ratio": the
median over rounds of after / before}}}.
"""

from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.worker import Worker, in_turn

WORKER = Path(__file__).with_name("version_worker.py")


def compare(pythons: dict[str, str], arguments: list[str], rounds: int) -> dict[str, Any]:
    """Time the versions in turn."""
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(Worker([python, str(WORKER), *arguments]))
            for name, python in pythons.items()
        }
        results = in_turn(workers, rounds)
    row: dict[str, Any] = {}
    for unit in ("words", "steps"):
        rates = {name: [each[unit] for each in runs] for name, runs in results.items()}
        pairs = zip(rates["before"], rates["after"], strict=True)
        row[unit] = {**rates, "ratio": median(after / before for before, after in pairs)}
        print(unit, row[unit]["ratio"], flush=True)
    return row


def main() -> None:
    options = script_parser(globals())
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
    note = "One thread a process; random weights of one seed."
    results = {"versions": versions, "steps": given.steps, "rows": rows}
    write_record(given.name, "speed", results, data=[given.data, given.train], note=note)


if __name__ == "__main__":
    main()
