"""Annotates batches of records, here or in several processes: contents in, rows to write out."""

import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import connection, parent_process
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from spacy_psa.annotation.input import MakeDoc, MalformedLine, Record
from spacy_psa.annotation.writers import Encode
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

Ask = Callable[["Language", "list[Doc]"], Sequence[Any]]
"""Asks more about annotated documents, and may add to them; it and its answers can be pickled."""
Argument = TypeVar("Argument")
Result = TypeVar("Result")

AHEAD = 2
"""The number of arguments for each process that are read before their turn."""


@dataclass(frozen=True)
class Annotated:
    """A document is annotated."""

    row: Any
    """The result of the encoder."""
    words: int
    answer: Any = None
    """The answer to the question about the document."""


@dataclass(frozen=True)
class Failed:
    """A document could not be tokenized, annotated or encoded."""

    reason: str


@dataclass(frozen=True)
class Malformed:
    """A record is not in the format of the input."""

    reason: str


Outcome = Annotated | Failed | Malformed


class Annotator:
    """Annotates batches, and returns rows that need neither the pipeline nor its vocabulary.

    It opens the pipeline when it gets the first batch. Before that it can be pickled, so that each
    process opens its own pipeline.
    """

    def __init__(
        self,
        open_pipeline: "Callable[[], Language]",
        make_doc: MakeDoc,
        encode: Encode,
        ask: "Ask | None" = None,
    ) -> None:
        self.open_pipeline = open_pipeline
        self.make_doc = make_doc
        self.encode = encode
        self.ask = ask

    @cached_property
    def nlp(self) -> "Language":
        """The pipeline."""
        return self.open_pipeline()

    def __call__(self, contents: Sequence[Any]) -> list[Outcome]:
        """Annotate the contents of a batch of records.

        If the pipeline fails on the batch, its documents are annotated again one by one.
        (`nlp.set_error_handler` would lose the whole batch, and raises an error for spaCy's own
        `ner` and `parser`.)
        """
        from spacy_psa.corpora.docbin import codecs_known
        from spacy_psa.memory import memory_zone

        # spaCy keeps every word that it meets. A memory zone frees the words of its documents,
        # so that memory does not grow with the input.
        with memory_zone(self.nlp), codecs_known():
            return list(self._outcomes(contents))

    def _outcomes(self, contents: Sequence[Any]) -> Iterator[Outcome]:
        made = [self._made(content) for content in contents]
        docs = [doc for doc in made if not isinstance(doc, Failed | Malformed)]
        try:
            done = list(self.nlp.pipe(docs, batch_size=len(docs))) if docs else []
            answers = self._answers(done)
        except Exception:  # a component may raise any error; the document is found below
            done = []
        stream = zip(done, answers) if done else iter(())
        for content, doc in zip(contents, made, strict=True):
            if isinstance(doc, Failed | Malformed):
                yield doc
            elif len(done) == len(docs):
                yield self._encoded(*next(stream))
            else:
                yield self._by_itself(content)

    def _made(self, content: Any) -> "Doc | Failed | Malformed":
        try:
            return self.make_doc(self.nlp, content)
        except MalformedLine as error:
            return Malformed(str(error))
        except Exception as error:  # a tokenizer may raise any error
            return Failed(_reason(error))

    def _by_itself(self, content: Any) -> Outcome:
        # A new doc, because the components before the one that failed have changed the first.
        doc = self._made(content)
        if isinstance(doc, Failed | Malformed):
            return doc
        try:
            doc = self.nlp(doc)
            return self._encoded(doc, *self._answers([doc]))
        except Exception as error:
            return Failed(_reason(error))

    def _answers(self, docs: "list[Doc]") -> Sequence[Any]:
        return self.ask(self.nlp, docs) if self.ask and docs else [None] * len(docs)

    def _encoded(self, doc: "Doc", answer: Any) -> Outcome:
        try:
            return Annotated(self.encode(doc), len(doc), answer)
        except Exception as error:  # data of users or components may not be writable
            return Failed(_reason(error))


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"


def annotated(
    annotator: Annotator, records: Iterable[Record], batch_size: int, n_process: int
) -> Generator[tuple[Record, Outcome], None, None]:
    """Open the pipeline; then yield each record with its outcome, in order.

    Close the generator to end before the last record. With `n_process` -1 there is a process for
    each core.
    """
    waiting: deque[list[Record]] = deque()

    def contents() -> Iterator[list[bytes]]:
        yield []  # opens the pipeline
        for batch in record_batches(records, batch_size):
            waiting.append(batch)
            yield [record.content for record in batch]

    count = n_process if n_process > 0 else os.cpu_count() or 1
    several = in_processes(annotator, contents(), count) if count > 1 else None
    batches = several or (annotator(batch) for batch in contents())
    next(batches)
    return _with_records(batches, waiting)


def _with_records(
    batches: Generator[list[Outcome], None, None], waiting: deque[list[Record]]
) -> Generator[tuple[Record, Outcome], None, None]:
    with closing(batches):
        for outcomes in batches:
            yield from zip(waiting.popleft(), outcomes, strict=True)


def record_batches(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    """Cut a stream of records into batches, between documents if possible.

    A batch grows up to ten times as long, so that the records of a document stay together.

    Examples:
        >>> records = [Record("a", i, b"", goes_on=i in (1, 2)) for i in range(5)]
        >>> [len(batch) for batch in record_batches(records, size=2)]
        [4, 1]
    """
    batch: list[Record] = []
    for record in records:
        batch.append(record)
        if len(batch) >= size and (len(batch) >= 10 * size or not record.goes_on):
            yield batch
            batch = []
    if batch:
        yield batch


def in_processes(
    function: Callable[[Argument], Result], arguments: Iterable[Argument], count: int
) -> Generator[Result, None, None]:
    """Yield the result for each argument, in order, as `map` does, from several processes.

    Each process has its own copy of the function and one thread of torch. Arguments are read as
    they are needed, with a few ahead. Function and arguments are pickled. Close the generator to
    end the processes before the last argument. A killed process is an InputError; errors of the
    function and of `arguments` pass through.
    """
    pool = ProcessPoolExecutor(count, initializer=_start, initargs=(function,))
    waiting: deque[Future[Result]] = deque()
    try:
        for argument in arguments:
            waiting.append(pool.submit(_call, argument))
            if len(waiting) > AHEAD * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise InputError(
            "a process was killed, perhaps because memory ran out; "
            "use a smaller --n-process or --batch-size"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_function: Callable[[Any], Any]
"""The function of this process."""


def _start(function: Callable[[Any], Any]) -> None:
    import torch

    global _function
    _function = function
    # There are as many processes as cores, and torch's threads do not survive a fork.
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the first process to handle
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Without this, the process would wait for ever if its parent is killed."""
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _call(argument: Any) -> Any:
    return _function(argument)
