"""Write the training config of a record to a file, to repeat the training.

`python -m spacy train CONFIG.cfg --output FOLDER` reads the file. Its paths are those of the
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

    Raises:
        InputError: if the record does not have a config.
    """
    config = read_record(record)["config"]
    if config is None:
        raise InputError(f"{record}: this record has no config")
    with atomic_path(target) as temporary:
        temporary.write_text(Config(config).to_str(), encoding="utf8")


def main() -> None:
    given = script_parser(globals(), "RECORD.json", "CONFIG.cfg").parse_args()
    write_config(given.record, given.config)
    print(f"Written: {given.config}")


if __name__ == "__main__":
    main()
