"""What a training reached on development data, without a look at test data.

usage: python benchmarks/dev_run.py CONFIG.cfg LOG.jsonl OUT.json --commit C --note TEXT FILE ...

CONFIG.cfg is that of the trained model, LOG.jsonl what spaCy's logger wrote, the FILEs are
its data. `commit` is that of the code that trained. Writes the keys of
spacy_psa/scoring/result.py that make sense without a test, and the note.
"""

import argparse
from datetime import datetime, timezone
from pathlib import Path

import srsly
from thinc.api import Config

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.scoring.provenance import checksums, machine, versions
from spacy_psa.scoring.result import best, read_log


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--note", required=True)
    parser.add_argument("data", type=Path, nargs="+")
    args = parser.parse_args()
    config = Config().from_disk(args.config)
    dev = read_log(args.log)
    result = {
        "format": 1,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "note": args.note,
        "seed": config["training"]["seed"],
        "dev": dev,
        "best": best(dev),
        "data": checksums(args.data),
        "versions": versions(),
        "machine": machine(),
        "commit": args.commit,
        "config": config,
    }
    with atomic_path(args.out) as path:
        srsly.write_json(path, result)
    print(f"{args.out}: best {result['best']['score']:.4f} in epoch {result['best']['epoch']}")


if __name__ == "__main__":
    main()
