"""Measure annotation by workers of Ray on this machine: the workers, the shards and the driver.

The documents of the corpora are written once, as JSON lines, in shards of equal size. Then
`spacy_psa.annotation.ray_engine` annotates them with 1 and with 2 workers. The last run is over
many shards whose output exists, so that the workers have nothing to do: its time is the driver's.

Results (kind "figures"): `ray`, its version; `docs`, `words`, `bytes_in` and `bytes_out` of a run;
`runs`, by the number of workers, each with `seconds` by the clock, `start`, the seconds until the
first worker began its first shard, `driver_processor_seconds`, `load`, the number of processes that
wanted a core at its end (mean of a minute), and `shards`, in the order in which they were finished,
each with its `words`, its `seconds` by the clock and the `processor_seconds` of its worker; `kept`,
the runs over existing outputs, each with `shards`, `workers`, `seconds` by the clock from the first
report to the last, `driver_processor_seconds` of the whole run, and `load`.
"""

import json
import os
import time
from argparse import Namespace
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


def run(
    model: Path, source: Path, target: Path, workers: int
) -> tuple[dict[str, Any], list[Any], list[float]]:
    """Annotate a folder.

    Returns:
        The figures of the run, the report of each shard, and the seconds until each report.
    """
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
    figures = {
        "seconds": round(time.perf_counter() - started, 3),
        "driver_processor_seconds": round(time.process_time() - processor, 3),
        "load": round(os.getloadavg()[0], 2),
    }
    return figures, reports, times


def measure(given: Namespace, folder: Path) -> dict[str, Any]:
    """The figures of one pipeline."""
    write_shards(given.corpora, folder / "in", given.shards)
    runs, model = {}, Path(given.model)
    for count in given.workers:
        figures, reports, times = run(model, folder / "in", folder / str(count), count)
        shards = [
            {
                "words": each.words,
                "seconds": round(each.seconds, 3),
                "processor_seconds": round(each.processor_seconds, 3),
            }
            for each in reports
        ]
        start = round(times[0] - reports[0].seconds, 3)
        runs[str(count)] = {**figures, "start": start, "shards": shards}
        print(f"{count} workers: {figures['seconds']} s", flush=True)
    return {
        "ray": version("ray"),
        "docs": sum(report.docs for report in reports),
        "words": sum(report.words for report in reports),
        "bytes_in": _size(folder / "in"),
        "bytes_out": _size(folder / str(count)),
        "runs": runs,
        "kept": [_kept(model, folder / f"kept-{n}", n, count) for n in given.kept],
    }


def _kept(model: Path, folder: Path, count: int, workers: int) -> dict[str, Any]:
    """The figures of a run over existing outputs."""
    for name in ("in", "out"):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            (folder / name / f"{number:06}.jsonl").touch()
    figures, _, times = run(model, folder / "in", folder / "out", workers)
    print(f"{count} shards with output: {figures['seconds']} s", flush=True)
    seconds = {"seconds": round(times[-1] - times[0], 3)}
    return {"shards": count, "workers": workers, **figures, **seconds}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def main() -> None:
    options = script_parser(globals(), "MODEL", "OUT.json")
    options.add_argument("corpora", type=Path, nargs="+", metavar="CORPUS.spacy")
    options.add_argument("--shards", type=int, default=16, help="number of shards (16)")
    options.add_argument("--kept", type=int, nargs="+", default=[250, 1000], help="(250 1000)")
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="(1 2)")
    given = options.parse_args()
    with TemporaryDirectory() as folder:
        results = measure(given, Path(folder))
    write_record(given.out, "many_machines", results, data=given.corpora)


if __name__ == "__main__":
    main()
