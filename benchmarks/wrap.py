"""Turn a JSON file of spacy-psa into a record.

`spacy-psa report`, `calibrate --json` and `benchmark speed` write JSON formats of their own. This
script puts their figures into the envelope of `benchmarks.record` and writes
benchmarks/EXPERIMENT/results/NAME.json.
"""

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.record import Kind, make_record, save_record
from benchmarks.script import script_parser
from spacy_psa.errors import InputError

SOURCE = ("date", "command", "commit", "modified", "data", "machine", "versions")
SCORED = ("model", "test", "scores", "support", "speed")


def training_results(
    product: Mapping[str, Any], setup: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The results of a training, from the JSON of `spacy-psa report` or only `dev` and `best`."""
    results = {
        **{key: product.get(key) for key in SCORED},
        "dev": product["dev"],
        "best": product["best"],
        "setup": None if setup is None else dict(setup),
    }
    if genres := product.get("genres"):
        results["genres"] = {name: _overall(genre) for name, genre in genres.items()}
    return results


def _overall(genre: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of a genre without those of each label."""
    scores = {key: value for key, value in genre["scores"].items() if isinstance(value, float)}
    return {"words": genre["words"], "scores": scores}


def kind_of(product: Mapping[str, Any]) -> Kind:
    """The kind of results of a JSON file."""
    if "criterion" in product and "checksums" in product:
        return "calibration"
    if "dev" in product and "best" in product:
        return "training"
    if "settings" in product and "rows" in product:
        return "speed"
    raise InputError("this is not a JSON file of spacy-psa report, calibrate or benchmark speed")


def wrap(
    product: Mapping[str, Any],
    experiment: str,
    name: str,
    *,
    command: str | None = None,
    setup: Mapping[str, Any] | None = None,
    note: str = "",
) -> dict[str, Any]:
    """A record of the JSON of a command.

    Args:
        command: the command of the experiment, if it is not the one that wrote the JSON.
        setup: describes the data of a training.

    Raises:
        InputError: if `product` is not in one of the three formats.
    """
    kind = kind_of(product)
    source = {key: product.get(key) for key in SOURCE}
    source["command"] = command or product.get("command")
    if kind == "training":
        results = training_results(product, setup)
    elif kind == "calibration":
        # Its `data` are figures, by file.
        source["data"] = product["checksums"]
        results = {k: product[k] for k in ("model", "criterion", "temperature", "decode", "data")}
    else:
        others = {*SOURCE, "format", "seed", "config", "note"}
        results = {key: value for key, value in product.items() if key not in others}
    return make_record(
        experiment,
        name,
        kind,
        results,
        source=source,
        seed=product.get("seed"),
        config=product.get("config"),
        note=" ".join(each for each in (product.get("note", ""), note) if each),
    )


def main() -> None:
    options = script_parser(globals(), "PRODUCT.json")
    options.add_argument("experiment", metavar="EXPERIMENT", help="folder below benchmarks")
    options.add_argument("name", metavar="NAME", help="name of the record")
    options.add_argument("--note", default="", help="further remarks")
    given = options.parse_args()
    product = json.loads(given.product.read_text(encoding="utf8"))
    save_record(wrap(product, given.experiment, given.name, note=given.note))


if __name__ == "__main__":
    main()
