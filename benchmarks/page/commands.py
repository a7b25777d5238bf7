"""Measure how soon the first commands of a new user answer.

- `refusal`: `init corpus` refuses a folder, since a line of its file cannot be read
- `annotate`: `annotate` annotates 100 texts with a model

Each runs in a new process, `--repeats` times. The record benchmarks/page/results/commands.json has
for each `cold`, its first run after the cache of the file system was dropped (Linux, root), and
`warm`, the median of the others: `seconds` of processor time and of the `clock`. Without the right
to drop the cache, `cold` is null.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.page.measure import texts_of
from benchmarks.record import write_record
from benchmarks.script import script_parser

CACHE = Path("/proc/sys/vm/drop_caches")
BROKEN = "EU B-ORG\nrejects O\n\nGerman B-MISC\ncall\n"


def used(*words: str | Path, status: int = 0) -> dict[str, float]:
    """Run a command of the package, and return its processor time and its time of the clock.

    Raises:
        RuntimeError: if it ends with another status.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "spacy_psa", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    if done.returncode != status:
        raise RuntimeError(done.stderr)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "clock": clock}


def dropped() -> bool:
    """Drop the cache of the file system, and tell whether that was possible."""
    try:
        subprocess.run(["sync"], check=True)
        CACHE.write_text("3")
    except OSError:
        return False
    return True


def main() -> None:
    options = script_parser(globals(), "MODEL", "DATA.jsonl")
    options.add_argument("--repeats", type=int, default=9, help="warm runs of each (9)")
    given = options.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        broken, texts = Path(folder, "files"), Path(folder, "texts.txt")
        broken.mkdir()
        Path(broken, "train.conll").write_text(BROKEN, encoding="utf8")
        texts.write_text("\n".join(texts_of(given.data)[:100]) + "\n", encoding="utf8")
        commands = {
            "refusal": (("init", "corpus", broken, Path(folder, "corpus")), 2),
            "annotate": (("annotate", given.model, texts, Path(folder, "annotated.jsonl")), 0),
        }
        for name, (words, status) in commands.items():
            cold = used(*words, status=status) if dropped() else None
            runs = []
            for _ in range(given.repeats):
                Path(folder, "annotated.jsonl").unlink(missing_ok=True)
                runs.append(used(*words, status=status))
            warm = {key: median(run[key] for run in runs) for key in ("seconds", "clock")}
            results[name] = {"cold": cold, "warm": warm}
    write_record("commands", "page", results, data=[given.data])


if __name__ == "__main__":
    main()
