"""A benchmark's figures as JSON, with where they come from."""

import json
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.scoring.provenance import checksums, commit, machine, versions


def write_record(out: Path, figures: Mapping[str, Any], data: Iterable[Path] = ()) -> None:
    """Write figures beside `format`, `date`, `command` (of this process), `data` {path: MD5},
    `machine`, `versions`, and the `commit` checked out here, `modified` or not."""
    head, modified = commit()
    record = {
        "format": 1,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(["python", *sys.argv]),
        **figures,
        "data": checksums(data),
        "machine": machine(),
        "versions": versions(),
        "commit": head,
        "modified": modified,
    }
    with atomic_path(out) as temporary:
        temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf8")
