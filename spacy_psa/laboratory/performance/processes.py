"""Measurements in a process of their own: opening a pipeline, and its memory.

    python -m spacy_psa.laboratory.performance.processes load MODEL
    python -m spacy_psa.laboratory.performance.processes memory MODEL DATA.spacy WORDS [long]

Each prints one JSON object.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from spacy_psa.child_processes import child_command, child_environment
from spacy_psa.errors import InputError
from spacy_psa.laboratory.performance.timing import Timing

BATCH_WORDS = 100_000


class Loading:
    """Runs `import spacy` and `spacy.load` in a new process each time."""

    def __init__(self, name: str, path: str):
        self.name = name
        self.path = path

    def run(self) -> Timing:
        """Open the pipeline once."""
        seconds = elsewhere("load", self.path)
        return Timing(1, seconds["seconds"], seconds["cpu_seconds"])


def measure_memory(path: str, data: Path, words: int, long: bool = False) -> dict[str, Any]:
    """Measure the memory of a new process that annotates some words of a `.spacy` file.

    With `long`, the words are one doc without sentence boundaries.

    Returns:
        `words`; `seconds`; `loaded_bytes`, the peak memory after the pipeline is opened and has
        annotated one sentence; and `peak_bytes`, the peak memory at the end.
    """
    return elsewhere("memory", path, str(data), str(words), *(["long"] if long else []))


def elsewhere(*arguments: str) -> dict[str, Any]:
    """Run this module with these arguments in a new process, and read the JSON object it prints."""
    command = child_command("spacy_psa.laboratory.performance.processes", *arguments)
    done = subprocess.run(command, env=child_environment(), capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["killed, perhaps for lack of memory"]
        raise InputError(f"{' '.join(arguments)}: {lines[-1]}")
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed


def _load(path: str) -> dict[str, Any]:
    wall, processor = time.perf_counter(), time.process_time()
    import spacy

    spacy.load(path)
    return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - processor}


def _memory(path: str, data: str, words: str, *long: str) -> dict[str, Any]:
    import spacy
    import torch
    from spacy.tokens import Doc

    from spacy_psa.laboratory.performance.pipelines import long_text, read_words

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    nlp = spacy.load(path)
    wanted = int(words)
    sentences = read_words(Path(data), min(wanted, BATCH_WORDS))
    texts = [long_text(sentences, wanted)] if long else sentences
    list(nlp.pipe([nlp.make_doc("Ada Lovelace met Babbage .")]))
    loaded, done, started = _peak(), 0, time.perf_counter()
    while done < wanted:
        # A stream, as is usual: no doc is kept.
        docs = (Doc(nlp.vocab, words=text) for text in texts)
        done += sum(len(doc) for doc in nlp.pipe(docs))
    return {
        "words": done,
        "seconds": round(time.perf_counter() - started, 3),
        "loaded_bytes": loaded,
        "peak_bytes": _peak(),
    }


def _peak() -> int:
    status = Path("/proc/self/status")
    if status.exists():  # Linux; its getrusage also counts the process before exec
        return 1024 * int(status.read_text().split("VmHWM:")[1].split()[0])
    import resource

    # The unit is kilobytes, but bytes on a Mac.
    factor = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * factor


if __name__ == "__main__":
    task, *given = sys.argv[1:]
    print(json.dumps(_load(*given) if task == "load" else _memory(*given)))
