"""Measure annotation by workers of Ray on this machine: the workers, the shards and the driver.

The documents of the corpora are written once, as JSON lines, in shards of equal size. They are
annotated by `spacy_psa.annotation.ray_engine` with 1 and then 2 workers. Last comes a run over many
shards whose output is there, so that the workers do nothing: what it takes is the driver's share.

Results (kind "figures"): `ray`, its version; `docs`, `words` and `bytes_in`, what was read, and
`bytes_out`, what was written, of a run; `runs`, by the number of workers, each with `seconds` by
the clock, `start`, the seconds by the clock until the first worker began with its first shard,
`driver_processor_seconds`, `load`, how many processes of the machine wanted a core at its end (mean
of a minute), and `shards`, in the order in which they were done, each with its `words`, its
`seconds` by the clock and the `processor_seconds` of its worker; `kept`, the runs over outputs that
are there, each with `shards`, `workers`, `seconds` by the clock from the first report to the last,
`driver_processor_seconds` of the whole run, and `load`.
"""

import json
import os
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spacy.tokens import DocBin
from spacy.vocab import Vocab

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.annotation.row_annotator import RowAnnotator


def write_shards(corpora: Sequence[Path], folder: Path, count: int) -> None:
    """Write the documents of some `.spacy` files to `count` shards, in turn."""
    folder.mkdir()
    texts = [doc.text for path in corpora for doc in DocBin().from_disk(path).get_docs(Vocab())]
    for number in range(count):
        rows = [{"id": i, "text": texts[i]} for i in range(number, len(texts), count)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{number:06}.jsonl").write_text(lines, encoding="utf8")


def run(model: Path, source: Path, target: Path, workers: int) -> dict[str, Any]:
    """Annotate a folder, and say what it took."""
    from spacy_psa.annotation.ray_engine import annotate_shards
    from spacy_psa.annotation.shard_annotator import ShardAnnotator
    from spacy_psa.annotation.shards import Place, find_shards

    places = Place.of(str(source)), Place.of(str(target))
    shards = find_shards(places[0], None, "auto")
    annotator = ShardAnnotator(*places, RowAnnotator(str(model.resolve())))
    started, processor = time.perf_counter(), time.process_time()
    reports, times = [], []
    for report in annotate_shards(annotator, shards, workers):
        assert report.error is None, report.error
        reports.append(report)
        times.append(time.perf_counter() - started)
    return {
        "reports": reports,
        "seconds": round(time.perf_counter() - started, 3),
        "first": times[0],
        "last": times[-1],
        "driver_processor_seconds": round(time.process_time() - processor, 3),
        "load": round(os.getloadavg()[0], 2),
    }


def measure(
    model: Path,
    corpora: Sequence[Path],
    shards: int,
    kept: Sequence[int],
    workers: Sequence[int],
    folder: Path,
) -> dict[str, Any]:
    """The figures of one pipeline."""
    write_shards(corpora, folder / "in", shards)
    runs = {}
    for count in workers:
        found = run(model, folder / "in", folder / str(count), count)
        reports = found.pop("reports")
        first = found.pop("first")
        found.pop("last")
        runs[str(count)] = {
            **found,
            "start": round(first - reports[0].seconds, 3),
            "shards": [
                {
                    "words": each.words,
                    "seconds": round(each.seconds, 3),
                    "processor_seconds": round(each.processor_seconds, 3),
                }
                for each in reports
            ],
        }
        print(f"{count} workers: {found['seconds']} s", flush=True)
    return {
        "ray": version("ray"),
        "docs": sum(report.docs for report in reports),
        "words": sum(report.words for report in reports),
        "bytes_in": _size(folder / "in"),
        "bytes_out": _size(folder / str(workers[-1])),
        "runs": runs,
        "kept": [_kept(model, folder / f"kept-{count}", count, workers[-1]) for count in kept],
    }


def _kept(model: Path, folder: Path, count: int, workers: int) -> dict[str, Any]:
    """What a run over outputs that are there takes."""
    for name in ("in", "out"):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            (folder / name / f"{number:06}.jsonl").touch()
    found = run(model, folder / "in", folder / "out", workers)
    print(f"{count} shards that are there: {found['seconds']} s", flush=True)
    return {
        "shards": count,
        "workers": workers,
        "seconds": round(found["last"] - found["first"], 3),
        "driver_processor_seconds": found["driver_processor_seconds"],
        "load": found["load"],
    }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def main() -> None:
    options = script_parser(globals(), "MODEL", "OUT.json")
    options.add_argument("corpora", type=Path, nargs="+", metavar="CORPUS.spacy")
    options.add_argument("--shards", type=int, default=16, help="number of shards (16)")
    options.add_argument(
        "--kept", type=int, nargs="+", default=[250, 1000], help="shards that are there (250 1000)"
    )
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="1 and 2")
    given = options.parse_args()
    with TemporaryDirectory() as folder:
        results = measure(
            Path(given.model), given.corpora, given.shards, given.kept, given.workers, Path(folder)
        )
    write_record(given.out, "many_machines", results, data=given.corpora)


if __name__ == "__main__":
    main()
