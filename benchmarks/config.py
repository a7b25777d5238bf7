"""Write the training config of a record as a file, to train the same again.

`python -m spacy train CONFIG.cfg --output FOLDER` takes the file. The paths in it are those of the
recorded run.
"""

from pathlib import Path

from thinc.api import Config

from benchmarks.record import read_record
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError


def write_config(record: Path, target: Path) -> None:
    """Write the config of a record.

    Args:
        record: a result file.
        target: the config to write.

    Raises:
        InputError: if the record has no config.
    """
    config = read_record(record)["config"]
    if config is None:
        raise InputError(f"{record}: this record has no config")
    with atomic_path(target) as temporary:
        temporary.write_text(Config(config).to_str(), encoding="utf8")


def main() -> None:
    options = script_parser("benchmarks.config", __doc__, "RECORD.json")
    options.add_argument("target", type=Path, metavar="CONFIG.cfg")
    given = options.parse_args()
    write_config(given.record, given.target)
    print(f"Written: {given.target}")


if __name__ == "__main__":
    main()
