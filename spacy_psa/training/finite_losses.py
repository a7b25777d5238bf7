"""Steps of a training whose loss is infinite or not a number."""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import IO, Any

from spacy.language import Language
from spacy.training import Example

from spacy_psa.bridge.optimizer import torch_modules
from spacy_psa.errors import InputError
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.pipeline.prepared import Prepared
from spacy_psa.training.checkpoint import nodes_by_place

SHOWN = 5  # documents of a batch
IN_A_ROW = 10  # steps; after so many the weights are at fault, not the documents


class FiniteLosses:
    """Stands for a pipeline in spaCy's training loop, and lets no step with a bad loss be taken.

    The loop adds up gradients with `update`, then lets each component of `pipeline` make its
    step. After a loss that is not finite either an error stops the loop, or the step is left
    out: no component makes it, and the gradients are zero again. `bad` is whether the present step
    is left out. `batch` has all examples of the step: where spaCy divides them into parts, by
    `training.accumulate_gradient`, the mean of a loss is one over all of them. `ready` has these
    parts, if they were prepared.

    Args:
        skip: whether to leave such a step out; else it is an error.
        stderr: gets a line for each step that is left out.
        left_out: number of steps that were left out before.
    """

    def __init__(self, nlp: Language, *, skip: bool, stderr: IO[str], left_out: int = 0):
        self.nlp = nlp
        self.skip = skip
        self.stderr = stderr
        self.left_out = left_out
        self.batch: list[Example] = []
        self.ready: Iterator[Prepared] = iter(())
        self._step = 0
        self._in_a_row = 0
        self.bad = False

    def begin(self, step: int) -> None:
        """Begin a step."""
        self._in_a_row = self._in_a_row + 1 if self.bad else 0
        self._step, self.bad = step, False

    @property
    def pipeline(self) -> list[tuple[str, Any]]:
        """The components that make the present step."""
        return [] if self.bad else self.nlp.pipeline

    def use_params(self, params: dict[Any, Any]) -> AbstractContextManager[None]:
        """Replace the weights for a while."""
        return self.nlp.use_params(params)

    def update(self, examples: list[Example], *, losses: dict[str, float], **settings: Any) -> None:
        """Add up the gradients of a part of the batch.

        Raises:
            InputError: a loss is not finite, and steps are not left out, or too many of them were.
        """
        if self.bad:
            return
        before = dict(losses)
        pipes = [pipe for _, pipe in self.nlp.pipeline if isinstance(pipe, StructuredPipe)]
        try:
            for pipe in pipes:
                pipe._whole = self.batch if len(examples) < len(self.batch) else None
            self._add_up(examples, losses, settings)
        finally:
            for pipe in pipes:
                pipe._whole = None
        wrong = [name for name, loss in losses.items() if not math.isfinite(loss)]
        if not wrong:
            return
        fault = (
            f"step {self._step}: the loss of {', '.join(wrong)} is {losses[wrong[0]]} on "
            f"{_named(examples)}"
        )
        if not self.skip:
            raise InputError(
                f"{fault}: check their annotation, and the word vectors for values that are not "
                "finite; or lower the learning rate; or leave such steps out with "
                "--skip-bad-loss. The last checkpoint and model-best are from before this step"
            )
        if self._in_a_row == IN_A_ROW - 1:
            raise InputError(
                f"{fault}, as in each of the {IN_A_ROW - 1} steps before it: lower the learning "
                "rate, or check the word vectors for values that are not finite"
            )
        losses.update({name: before.get(name, 0.0) for name in losses})
        self.leave_out()
        self.stderr.write(f"{fault}: left out\n")

    def _add_up(
        self, examples: list[Example], losses: dict[str, float], settings: dict[str, Any]
    ) -> None:
        ready = next(self.ready, None)
        if ready is not None and list(map(id, ready.originals)) == list(map(id, examples)):
            ready.update(self.nlp, settings["drop"], losses, settings["exclude"])
        else:
            self.nlp.update(examples, losses=losses, **settings)

    def leave_out(self) -> None:
        """Leave out the present step, and drop its gradients."""
        self.left_out += not self.bad
        self.bad = True
        _drop_gradients(self.nlp)


def _named(examples: list[Example]) -> str:
    """The documents, by their first words."""
    texts = [repr(example.text[:60]) for example in examples[:SHOWN]]
    more = f" and {len(examples) - SHOWN} more" if len(examples) > SHOWN else ""
    return f"{len(examples)} document(s): {'; '.join(texts)}{more}"


def _drop_gradients(nlp: Language) -> None:
    for node in nodes_by_place(nlp).values():
        for name in node.param_names:
            if node.has_grad(name):
                gradient: Any = node.get_grad(name)
                gradient[...] = 0
        for module in torch_modules(node):
            module.zero_grad(set_to_none=False)
