"""Batches of a training corpus whose position can be saved and found again."""

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from spacy.language import Language
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.training.processes import Processes
from spacy_psa.training.random_states import get_random_states, set_random_states

Batch = list[Example]


class ResumableBatches:
    """Yields (epoch, parts) in the order of spaCy's own training loop, and can go on in the middle.

    Each epoch shuffles the examples and cuts them into batches. Each process takes one of them in a
    step, so a step has as many parts as there are processes, the last step of an epoch perhaps
    fewer. `state` says where the
    iteration stands; an iterator that is made with this state yields the batches that the
    first one would have yielded next.

    Args:
        nlp: the pipeline that is trained.
        corpus: gives the examples of an epoch.
        batcher: cuts them into batches.
        max_epochs: number of epochs, 0 for no limit, -1 to stream the corpus from its reader
            in each epoch without a shuffle. These are spaCy's meanings.
        processes: the processes that train; all get the same order of examples.
        state: what `state` gave, or None to begin.

    Raises:
        InputError: the corpus has no example, or another number of them than when the state
            was saved.
    """

    def __init__(
        self,
        nlp: Language,
        corpus: Callable[[Language], Iterable[Example]],
        batcher: Callable[[Iterable[Example]], Iterable[Batch]],
        max_epochs: int,
        processes: Processes,
        state: dict[str, Any] | None = None,
    ):
        self.nlp = nlp
        self.corpus = corpus
        self.batcher = batcher
        self.max_epochs = max_epochs
        self.processes = processes
        self.epoch = 0
        self.taken = 0
        self.order: list[int] = []
        self.at_start: dict[str, Any] = {}
        self._saved = state
        self._examples = [] if max_epochs < 0 else list(corpus(nlp))
        if max_epochs >= 0 and not self._examples:
            raise InputError("the training corpus has no example; check [paths.train]")

    @property
    def state(self) -> dict[str, Any]:
        """The epoch, the order of its examples, the batches taken from it, and the states of
        the random generators when its first batch was cut."""
        return {
            "epoch": self.epoch,
            "taken": self.taken,
            "order": list(self.order),
            "at_start": self.at_start,
        }

    def __iter__(self) -> Iterator[tuple[int, list[Batch]]]:
        streams, examples = self.max_epochs < 0, self._examples
        self.order = list(range(len(examples)))
        if self._saved is not None:
            if len(self._saved["order"]) != len(examples):
                raise InputError(
                    f"the training corpus has {len(examples)} examples, and had "
                    f"{len(self._saved['order'])} when the checkpoint was saved: train on the "
                    "same corpus, or start again without --resume"
                )
            self.epoch, self.order = self._saved["epoch"], list(self._saved["order"])
            yield from self._rest(examples)
        while self.max_epochs < 1 or self.epoch != self.max_epochs:
            if not streams:
                random.shuffle(self.order)
                self.order = self.processes.share(self.order)
            self.at_start, self.taken = get_random_states(), 0
            for parts in self._cut(examples):
                self.taken += 1
                yield self.epoch, parts
            self.epoch += 1

    def _cut(self, examples: list[Example]) -> Iterator[list[Batch]]:
        streams = self.max_epochs < 0
        ordered = self.corpus(self.nlp) if streams else [examples[i] for i in self.order]
        batches = iter(self.batcher(ordered))
        while parts := list(islice(batches, self.processes.count)):
            yield parts

    def _rest(self, examples: list[Example]) -> Iterator[tuple[int, list[Batch]]]:
        """The steps of the saved epoch that were not taken yet."""
        assert self._saved is not None
        self.at_start, self.taken = self._saved["at_start"], self._saved["taken"]
        now = get_random_states()
        set_random_states(self.at_start)
        steps = self._cut(examples)
        for _ in range(self.taken):
            next(steps)
        set_random_states(now)
        for parts in steps:
            self.taken += 1
            yield self.epoch, parts
        self.epoch += 1
