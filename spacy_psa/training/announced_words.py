"""Gives the words of a batch their rows, the same in all processes.

Embedders give a row to each word that training meets. Each process of a training sees a part of a
batch alone, but knows all of it. So all processes let the embedders meet the words of the whole
batch before each step. During the step, no row is given. Symbols that turn up only then, such as
tags that an earlier component predicts, count as unknown in this step, and get rows after it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model
from torch import Tensor, nn

from spacy_psa.architectures.distinct_words import add_rows, meet
from spacy_psa.architectures.sentencewise import listens
from spacy_psa.bridge.layers import shim_of
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.sentences import split_sentences


class AnnouncedWords:
    """Keeps the rows of all embedders of a pipeline equal in all processes.

    New rows are drawn from a random generator of their own, which is at the same place in all
    processes.

    Args:
        nlp: the pipeline.
        random_state: the state of torch's generator that the rows are drawn from.
    """

    def __init__(self, nlp: Language, random_state: Tensor):
        self.nlp = nlp
        self.random_state = random_state
        self._closed: list[tuple[Model, _Closed]] = []

    def announce(self, docs: Sequence[Doc]) -> dict[nn.Parameter, Tensor]:
        """Let all embedders meet the words of a whole batch, and close their rows.

        Args:
            docs: the docs of the batches of all processes.

        Returns:
            The rows of each table that the step reads, for the tables that are large.
        """
        read: dict[nn.Parameter, Tensor] = {}
        with self._common_random_numbers():
            for _, pipe in self.nlp.components:
                model = getattr(pipe, "model", None)
                if not isinstance(model, Model):
                    continue
                whole = not isinstance(pipe, StructuredPipe) or listens(model)
                given = list(docs) if whole else split_sentences(docs)
                for node in model.walk():
                    rows = meet(node, given)
                    if rows is not None:
                        table = shim_of(node).module.get_parameter("table.weight")
                        read[table] = rows.to(table.device)
        self._close()
        return read

    @property
    def new(self) -> list[list[str]]:
        """The symbols of each embedder that turned up during the step in this process."""
        return [closed.new for _, closed in self._closed]

    def reopen(self, new: list[list[list[str]]]) -> None:
        """Open the rows after a step, and give rows to what turned up.

        Args:
            new: `new` of each process; nothing if nothing turned up.
        """
        for node, closed in self._closed:
            node.attrs["rows"] = closed.rows
        for (node, _), symbols in zip(self._closed, _merged(new)):
            add_rows(node, symbols)
        self._closed = []

    def _close(self) -> None:
        for _, pipe in self.nlp.components:
            model = getattr(pipe, "model", None)
            nodes = model.walk() if isinstance(model, Model) else ()
            for node in nodes:
                if isinstance(node.attrs.get("rows"), dict):
                    closed = _Closed(node.attrs["rows"])
                    node.attrs["rows"] = closed
                    self._closed.append((node, closed))

    @contextmanager
    def _common_random_numbers(self) -> Iterator[None]:
        own = torch.get_rng_state()
        torch.set_rng_state(self.random_state)
        try:
            yield
        finally:
            self.random_state = torch.get_rng_state()
            torch.set_rng_state(own)


class _Closed:
    """The rows of an embedder while none may be given; it notes who asks for one."""

    def __init__(self, rows: dict[str, int]):
        self.rows = rows
        self.new: list[str] = []

    def __contains__(self, symbol: str) -> bool:
        return symbol in self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def __setitem__(self, symbol: str, row: int) -> None:
        self.new.append(symbol)

    def get(self, symbol: str, default: Any = None) -> Any:
        return self.rows.get(symbol, default)


def _merged(by_process: list[list[list[str]]]) -> Iterator[list[str]]:
    """Merge the new symbols of each embedder."""
    for lists in zip(*by_process, strict=True):
        yield sorted({symbol for symbols in lists for symbol in symbols})
