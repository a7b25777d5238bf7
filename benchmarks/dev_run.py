"""Record the development scores of a training that was stopped, without test data.

Writes benchmarks/EXPERIMENT/results/NAME.json, a record of the kind "training" whose `model`,
`test`, `scores`, `support` and `speed` are null.
"""

import json
from pathlib import Path
from typing import Any

from thinc.api import Config

from benchmarks.record import make_record, save_record
from benchmarks.script import script_parser
from benchmarks.wrap import training_results
from spacy_psa.scoring.provenance import provenance
from spacy_psa.scoring.result import best, read_log


def development_record(
    config: Path,
    log: Path,
    experiment: str,
    name: str,
    *,
    commit: str,
    note: str,
    data: list[Path],
    command: str | None = None,
) -> dict[str, Any]:
    """The record of a training without a test; see `make_record`.

    `log` is the `output_file` of `spacy.ConsoleLogger.v3`; `commit`, that of the code that trained.

    Raises:
        InputError: if a file is missing, or `log` is not in its format.
    """
    settings = Config().from_disk(config).interpolate()
    dev = read_log(log)
    # Nobody knows any more whether the code of the training was changed.
    source = {**provenance(data), "commit": commit, "modified": None, "command": command}
    return make_record(
        experiment,
        name,
        "training",
        training_results({"dev": dev, "best": best(dev)}),
        source=source,
        seed=settings["training"]["seed"],
        config=json.loads(json.dumps(settings, default=str)),
        note=note,
    )


def main() -> None:
    options = script_parser(globals(), "CONFIG.cfg", "LOG.jsonl")
    options.add_argument("experiment", metavar="EXPERIMENT", help="folder below benchmarks")
    options.add_argument("name", metavar="NAME", help="name of the record")
    options.add_argument("data", type=Path, nargs="+", metavar="FILE", help="data of the training")
    options.add_argument("--commit", required=True, help="commit of the code that trained")
    options.add_argument("--note", required=True, help="the training, and why it was stopped")
    options.add_argument("--command", help="command that trained it")
    record = development_record(**vars(options.parse_args()))
    save_record(record)
    top = record["results"]["best"]
    print(f"best {top['score']:.4f} in epoch {top['epoch']}")


if __name__ == "__main__":
    main()
