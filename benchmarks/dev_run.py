"""Record what a training reached on development data, without a look at test data.

Writes benchmarks/EXPERIMENT/results/NAME.json, a record of the kind "training" whose `model`,
`test`, `scores`, `support` and `speed` are null.
"""

import json
from pathlib import Path
from typing import Any

from thinc.api import Config

from benchmarks.record import make_record, place_of, save_record
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
    """The record of a training without a test.

    Args:
        config: the config of the trained model.
        log: what `spacy.ConsoleLogger.v3` wrote to its `output_file`.
        experiment: the folder below `benchmarks`.
        name: the name of the record.
        commit: the git commit of the code that trained.
        note: what was trained, and why it was stopped.
        data: the files that it was trained with.
        command: the command that trained it; None if it is not known.

    Raises:
        InputError: if a file is missing, or `log` is not in its format.
    """
    settings = Config().from_disk(config).interpolate()
    dev = read_log(log)
    # Whether the code of the training was changed is not known any more.
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
    options = script_parser("benchmarks.dev_run", __doc__)
    options.add_argument(
        "config", type=Path, metavar="CONFIG.cfg", help="config of the trained model"
    )
    options.add_argument("log", type=Path, metavar="LOG.jsonl", help="log of spaCy's logger")
    options.add_argument("experiment", metavar="EXPERIMENT", help="folder below benchmarks")
    options.add_argument("name", metavar="NAME", help="name of the record")
    options.add_argument("data", type=Path, nargs="+", metavar="FILE", help="data of the training")
    options.add_argument("--commit", required=True, help="commit of the code that trained")
    options.add_argument("--note", required=True, help="what was trained, and why it was stopped")
    options.add_argument("--command", help="command that trained it")
    given = options.parse_args()
    record = development_record(
        given.config,
        given.log,
        given.experiment,
        given.name,
        commit=given.commit,
        note=given.note,
        data=given.data,
        command=given.command,
    )
    save_record(record, place_of(record))
    top = record["results"]["best"]
    print(f"best {top['score']:.4f} in epoch {top['epoch']}")


if __name__ == "__main__":
    main()
