"""Rows that are timed in turn, also in processes of their own, which stay open between runs."""

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from spacy_psa.laboratory.performance.timing import Timing, stopwatch


class Worker:
    """A process that reads a line for each task and prints its result as a JSON object.

    It may print other lines, such as a log. The process ends with the context.
    """

    def __init__(self, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=environment
        )

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self.process.communicate()

    def answer(self) -> dict[str, Any]:
        """Read the next JSON object."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                result: dict[str, Any] = json.loads(line)
                return result
        raise RuntimeError("the process ended; its error is above")

    def do(self, task: str = "run") -> dict[str, Any]:
        """Let the process do a task."""
        assert self.process.stdin is not None
        print(task, file=self.process.stdin, flush=True)
        return self.answer()


class WorkerRow:
    """A row whose runs are a task of a worker."""

    def __init__(self, worker: Worker, name: str, task: str):
        self.worker, self.name, self.task = worker, name, task

    def run(self) -> Timing:
        result = self.worker.do(self.task)
        return Timing(result["amount"], result["seconds"], result["cpu_seconds"])


class DocRow:
    """A row whose runs call a function with docs that were made before the clock starts.

    The amount of work of a run is 1 for each doc, or the number of tokens.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], list[Doc]],
        do: Callable[[list[Doc]], object],
        amount: Callable[[list[Doc]], int] = len,
    ):
        self.name, self.make, self.do, self.amount = name, make, do, amount

    def run(self) -> Timing:
        docs = self.make()
        with stopwatch(self.amount(docs)) as timings:
            self.do(docs)
        return timings[0]


def tokens(docs: Iterable[Doc]) -> int:
    """The number of tokens of docs."""
    return sum(map(len, docs))


def annotate(nlp: Language, docs: Iterable[Doc]) -> None:
    """Annotate docs as a stream."""
    for _ in nlp.pipe(docs):
        pass


def doc_maker(nlp: Language, texts: Iterable[list[str]]) -> Callable[[], list[Doc]]:
    """A function that makes new docs of the words of texts."""
    return lambda: [Doc(nlp.vocab, words=words) for words in texts]


def in_turn(workers: Mapping[str, Worker], rounds: int) -> dict[str, list[dict[str, Any]]]:
    """The results of workers that run in turn, in the opposite order in every second round.

    A first round does not count.
    """
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
    for number in range(rounds + 1):
        for name in list(workers)[:: -1 if number % 2 else 1]:
            result = workers[name].do()
            print(number, name, result, flush=True)
            if number:
                results[name].append(result)
    return results


def faster(row: Sequence[Timing], other: Sequence[Timing]) -> float:
    """How many times as fast as another row a row is: the median over pairs of runs.

    It compares processor time, which other processes hardly change.

    Examples:
        >>> faster([Timing(1, 2.0, 1.0)], [Timing(1, 2.0, 1.5)])
        1.5
    """
    pairs = zip(row, other, strict=True)
    return round(median(theirs.cpu_seconds / own.cpu_seconds for own, theirs in pairs), 3)
