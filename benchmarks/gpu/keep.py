"""Make records of the results that `benchmarks.gpu.run` brought back from a machine with a GPU.

The archive has `speed*.json` of `benchmarks.gpu.speed`, `parts*.json` of `benchmarks.gpu.parts`,
`kernels*.json` of `benchmarks.gpu.kernels`, and a `timed.json` of `benchmarks.gpu.timed` for each
training. They become records of the kind
"figures" in benchmarks/gpu/results, under their names or as `RUN-SEED.json`; the docstrings of
these scripts describe them. COMMIT is that of the code,
which a machine without git does not know.
"""

import json
import tarfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from thinc.api import Config

from benchmarks.record import make_record, save_record
from benchmarks.script import script_parser

NOTE = "The machine had no git; the commit was given."


def contents(archive: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each record and the content of its file."""
    with tarfile.open(archive) as opened:
        for member in opened.getmembers():
            file = opened.extractfile(member)
            if file is None:
                continue
            if any(fnmatch(member.name, f"{name}*.json") for name in ("speed", "parts", "kernels")):
                yield Path(member.name).stem, json.load(file)
            elif member.name.endswith("/timed.json"):
                result = json.load(file)
                yield f"{result['run']}-{result['seed']}", result


def keep(archive: Path, commit: str, note: str) -> None:
    """Write a record for each result in the archive."""
    for name, result in contents(archive):
        source = {**result.pop("source"), "commit": commit, "modified": False}
        seed, config = result.pop("seed", None), result.pop("config", None)
        if config is not None:
            config = Config(config).interpolate()
        origin: Any = {"source": source, "seed": seed, "config": config}
        origin["note"] = f"{NOTE} {note}".strip()
        save_record(make_record("gpu", name, "figures", result, **origin))


def main() -> None:
    options = script_parser(globals())
    options.add_argument("archive", type=Path, metavar="records.tar.gz")
    options.add_argument("--commit", required=True, help="the commit that ran")
    options.add_argument("--note", default="", help="further remarks")
    given = options.parse_args()
    keep(given.archive, given.commit, given.note)


if __name__ == "__main__":
    main()
