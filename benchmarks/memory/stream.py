"""Measure whether memory stays flat over an endless stream of text with ever-new words.

Starts a process and writes sentences to its stdin as fast as it reads them. A tenth of the words
are new. Every few seconds, it looks up the resident memory and the open files of the process and of
its children, and adds a line to OUT.jsonl (next to OUT.json).

Modes:

- `annotate`: `spacy-psa annotate MODEL - -`
- `annotate-2`: the same with `--n-process 2`
- `pipe`: `nlp.pipe` in `nlp.memory_zone()`, in a user's program (`user.py`)

Results (kind "figures"): `mode`; `model`, its name; `every`, seconds between samples; `words` and
`new_words` that were written; `seconds`; `samples`, each with `seconds`, `words`, and `resident`
(bytes) and `files` (open ones) of each process, the first one before its children.
"""

import json
import random
import string
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

from benchmarks.record import write_record
from benchmarks.script import script_parser

MODES = {
    "annotate": ["spacy_psa", "annotate", "{model}", "-", "-"],
    "annotate-2": ["spacy_psa", "annotate", "{model}", "-", "-", "--n-process", "2"],
    "pipe": ["benchmarks.memory.user", "{model}"],
}
KNOWN = 20_000
"""The number of words that occur again and again."""
LENGTHS = (5, 40)
"""The minimum and the maximum length of a sentence."""


class Sentences:
    """An endless stream of sentences, in which about every tenth word is new."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.known = [self._word() for _ in range(KNOWN)]
        self.words = 0
        self.new = 0

    def __iter__(self) -> Iterator[str]:
        while True:
            words = self.draw.choices(self.known, k=self.draw.randint(*LENGTHS))
            for place in range(len(words)):
                if self.draw.random() < 0.1:
                    self.new += 1
                    words[place] = f"{self._word()}{_letters(self.new)}"
            self.words += len(words)
            yield f"{' '.join(words)}\n"

    def _word(self) -> str:
        word = "".join(self.draw.choices(string.ascii_lowercase, k=self.draw.randint(2, 9)))
        return word.capitalize() if self.draw.random() < 0.2 else word


def _letters(number: int) -> str:
    """A number in letters. With a capital before them, no two new words are equal."""
    digits = ""
    while number:
        number, digit = divmod(number, 26)
        digits += string.ascii_lowercase[digit]
    return f"X{digits}"


def processes(first: int) -> list[int]:
    """A process and all its descendants."""
    tree = [first]
    for each in tree:
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            tree += map(int, task.read_text().split())
    return tree


def sample(first: int) -> dict[str, list[int]]:
    """Resident memory in bytes, and open files, of a process and of its children."""
    counts: dict[str, list[int]] = {"resident": [], "files": []}
    for each in processes(first):
        status = Path(f"/proc/{each}/status").read_text()
        counts["resident"].append(1024 * int(status.partition("VmRSS:")[2].split()[0]))
        counts["files"].append(len(list(Path(f"/proc/{each}/fd").iterdir())))
    return counts


def main() -> None:
    options = script_parser(globals(), "OUT.json", "MODEL")
    options.add_argument("mode", choices=MODES)
    options.add_argument("--seconds", type=float, default=1800, help="how long at least (1800)")
    options.add_argument("--words", type=int, default=10**7, help="how many at least (10,000,000)")
    options.add_argument("--every", type=float, default=10, help="seconds between samples (10)")
    options.add_argument("--seed", type=int, default=1, help="seed of the words (1)")
    given = options.parse_args()
    words = (each.format(model=given.model) for each in MODES[given.mode])
    command = [sys.executable, "-m", *words]
    sentences = Sentences(given.seed)
    samples: list[dict[str, Any]] = []
    done = Event()
    started = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None

        def look() -> None:
            with given.out.with_suffix(".jsonl").open("w", encoding="utf8") as log:
                while not done.wait(given.every):
                    seconds = round(time.perf_counter() - started, 1)
                    counts = {"words": sentences.words, **sample(process.pid)}
                    samples.append({"seconds": seconds, **counts})
                    print(json.dumps(samples[-1]), file=log, flush=True)

        looking = Thread(target=look)
        looking.start()
        try:
            for sentence in sentences:
                process.stdin.write(sentence.encode())
                enough = sentences.words >= given.words
                if enough and time.perf_counter() - started > given.seconds:
                    break
        finally:
            done.set()
            looking.join()
        seconds = round(time.perf_counter() - started, 1)
        process.stdin.close()
    if process.returncode:
        sys.exit(f"the process ended with {process.returncode}; its error is above")
    model = Path(given.model)
    figures = {
        "mode": given.mode,
        "model": model.parent.name if model.name == "model-last" else model.name,
        "every": given.every,
        "words": sentences.words,
        "new_words": sentences.new,
        "seconds": seconds,
        "samples": samples,
    }
    write_record(given.out, "memory", figures, seed=given.seed)


if __name__ == "__main__":
    main()
