"""Reading the next steps of a training in a thread, while the present one is computed."""

import random
from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from spacy.language import Language
from spacy.training import Example
from spacy.training.loop import subdivide_batch

from spacy_psa.pipeline.prepared import Prepared

Step = list[list[Example]]
"""The batches of a step, one for each process."""
Drawn = tuple[Any, Any]
"""The states of `random` before and after a step was cut."""
STEPS = 2
"""The steps that are read ahead on a GPU."""


class Ahead:
    """Prepares the examples of the next steps in a thread.

    On a GPU, a step leaves the CPU time for that: torch computes a backward pass, and waits for the
    device, without Python's lock. Batches, their order and all weights are those without it. An
    error comes when its step does.

    The steps themselves are cut in the main thread, because a batcher may draw from Python's
    `random`. It gets the numbers that it would get without this, unless a component also draws from
    `random` in training, which would also change how a training is resumed.

    Args:
        nlp: the pipeline.
        parts: the parts that a batch is divided into, `training.accumulate_gradient`.
        frozen: the names of the components that do not learn.
        steps: the number of steps ahead.

    Attributes:
        ready: the parts of the present step, prepared.
    """

    def __init__(self, nlp: Language, parts: int, frozen: Collection[str], steps: int = STEPS):
        self.nlp = nlp
        self.parts = parts
        self.frozen = frozen
        self.steps = steps
        self.ready: list[Prepared] = []

    def __call__(self, steps: Iterator[Step]) -> Iterator[Step]:
        """Yield the steps as they are; `ready` belongs to the one that was yielded last."""
        waiting: deque[tuple[Step, Future[list[Prepared]], Drawn | None]] = deque()
        state = random.getstate()  # after the last step that was cut
        pool = ThreadPoolExecutor(1, "ahead")
        try:
            while True:
                while len(waiting) <= self.steps:
                    outside = random.getstate()
                    random.setstate(state)
                    step = next(steps, None)
                    before, state = state, random.getstate()
                    random.setstate(outside)
                    if step is None:
                        break
                    drawn = (before, state) if state != before else None
                    waiting.append((step, pool.submit(self._prepare, step), drawn))
                if not waiting:
                    return
                step, result, drawn = waiting.popleft()
                self.ready = result.result()
                _catch_up(drawn)
                yield step
        finally:
            pool.shutdown(cancel_futures=True)

    def _prepare(self, step: Step) -> list[Prepared]:
        (batch,) = step
        parts = subdivide_batch(batch, self.parts)
        return [Prepared(self.nlp, part, self.frozen) for part in parts]


def _catch_up(drawn: Drawn | None) -> None:
    """Go on to the state of `random` after a step was cut, from that before."""
    if drawn is not None and random.getstate() == drawn[0]:
        random.setstate(drawn[1])
