"""Write the training config of a record as a file, to train the same again.

`python -m spacy train CONFIG.cfg --output FOLDER` takes the file. The paths in it are those of the
recorded run.
"""

import argparse
from pathlib import Path

from thinc.api import Config

from benchmarks.record import read_record
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


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.config",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("record", type=Path, metavar="RECORD.json")
    found.add_argument("target", type=Path, metavar="CONFIG.cfg")
    return found


def main() -> None:
    given = parser().parse_args()
    write_config(given.record, given.target)
    print(f"Written: {given.target}")


if __name__ == "__main__":
    main()
