"""Time a pipeline on one and two threads, and in two processes, in turn.

Each row has a process of its own, which opens the pipeline once. A round annotates all texts of
--data in each row; every other round has the opposite order, and the first round does not count.
The time includes tokenization and the start of further processes. `--batch-tokens` are the tokens
that go through the model together; the second number is a batch as for a GPU.

- `1 thread` and `2 threads`: `nlp.pipe(texts)`, with torch limited to that number
- `default`: `nlp.pipe(texts)`, as torch sets itself up
- `2 processes`: `nlp.pipe(texts, n_process=2)`, as torch sets itself up
- `2 processes, codecs known`: the same within `spacy_psa.corpora.docbin.codecs_known()`, with which
  srsly packs documents faster on their way between the processes

Results (kind "figures"): `words`, the words of a round; `rows` {batch_tokens: {row: {`words`:
[words per second of each round, by the clock], `ratio`: the median over rounds of its rate to that
of `1 thread`}}}.
"""

import os
import sys
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.worker import Worker, in_turn

ROWS = {
    "1 thread": (1, 1, False),
    "2 threads": (2, 1, False),
    "default": (0, 1, False),
    "2 processes": (0, 2, False),
    "2 processes, codecs known": (0, 2, True),
}
"""The threads (0 for torch's own number) and the processes of each row, and `codecs_known`."""


def here(model: str, data: str, words: int, batch_tokens: int, row: str) -> None:
    """Annotate the texts for each line of the input, and print words a second as JSON."""
    import json
    import time
    from contextlib import nullcontext

    import spacy
    import torch
    from spacy.vocab import Vocab

    from spacy_psa.architectures.distinct_words import caches
    from spacy_psa.corpora.docbin import codecs_known, read_docbin

    threads, processes, known = ROWS[row]
    if threads:
        torch.set_num_threads(threads)
    nlp = spacy.load(model)
    pipes: list[Any] = [pipe for _, pipe in nlp.pipeline if hasattr(pipe, "batch_tokens")]
    for pipe in pipes:
        pipe.batch_tokens = batch_tokens
    texts, count = [], 0
    for doc in cycle(list(read_docbin(Path(data), Vocab()))):
        if count >= words:
            break
        texts.append(" ".join(token.text for token in doc))
        count += len(doc)
    for _ in sys.stdin:
        for pipe in pipes:
            for cache in caches(pipe.model):
                cache.forget()
        start = time.perf_counter()
        with codecs_known() if known else nullcontext():
            tokens = sum(len(doc) for doc in nlp.pipe(texts, n_process=processes))
        print(json.dumps({"words": tokens / (time.perf_counter() - start)}), flush=True)


def measure(arguments: list[str], rounds: int) -> dict[str, Any]:
    """Time the rows in turn."""
    own = {key: value for key, value in os.environ.items() if not key.endswith("NUM_THREADS")}
    command = [sys.executable, "-m", "benchmarks.speed.cores", "--here", *arguments]
    with ExitStack() as stack:
        workers = {row: stack.enter_context(Worker([*command, row], own)) for row in ROWS}
        results = in_turn(workers, rounds)
    rates = {row: [each["words"] for each in runs] for row, runs in results.items()}
    first = rates["1 thread"]
    return {
        row: {"words": each, "ratio": median(rate / base for rate, base in zip(each, first))}
        for row, each in rates.items()
    }


def main() -> None:
    options = script_parser(globals())
    options.add_argument("name", help="name of the record")
    options.add_argument("model", help="folder of a pipeline")
    options.add_argument("--data", required=True, type=Path, help="documents with the texts")
    options.add_argument("--words", type=int, default=100_000, help="words of a round")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--batch-tokens", type=int, nargs="+", default=[4_000, 32_000])
    given = options.parse_args()
    rows = {}
    for batch_tokens in given.batch_tokens:
        print(f"batch_tokens = {batch_tokens}", flush=True)
        arguments = [given.model, str(given.data), str(given.words), str(batch_tokens)]
        rows[str(batch_tokens)] = measure(arguments, given.rounds)
    note = "By the clock, on an otherwise idle machine."
    results = {"words": given.words, "rows": rows}
    write_record(given.name, "speed", results, data=[given.data], note=note)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        model, data, words, batch_tokens, row = sys.argv[2:]
        here(model, data, int(words), int(batch_tokens), row)
    else:
        main()
