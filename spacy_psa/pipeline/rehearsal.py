"""Rehearsal: learning to repeat earlier predictions."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import set_dropout_rate, xp2torch
from torch import Tensor

from spacy_psa.architectures.crf import apart
from spacy_psa.architectures.sentencewise import listeners
from spacy_psa.bridge.layers import differentiate, join_rows
from spacy_psa.errors import InputError
from spacy_psa.structs.cross_entropy import cross_entropy


def rehearse(
    self: Any,
    examples: Iterable[Example],
    *,
    drop: float = 0.0,
    sgd: Any = None,
    losses: dict[str, float] | None = None,
    **config: Any,
) -> dict[str, float]:
    """Learn to repeat what the model predicted when `nlp.resume_training` was called.

    The loss is the cross entropy with the distributions of the copy that
    `nlp.resume_training` keeps; before that, nothing is learned.

    Args:
        examples: the docs; their annotation is not used.
        drop: dropout rate of spaCy's own layers.
        sgd: the optimizer; None to add up gradients and keep the weights as they are.
        losses: the losses so far, by component.

    Returns:
        The losses.

    Raises:
        InputError: if the model listens to another component, which is not trained with it.
    """
    losses = {} if losses is None else losses
    losses.setdefault(self.name, 0.0)
    docs = [example.predicted for example in examples if len(example.predicted)]
    if self._rehearsal_model is not None and docs:
        if listeners(self.model):
            raise InputError(
                f"{self.name}: it listens to another component, which nlp.rehearse does not run: "
                "use nlp.replace_listeners for an encoder of its own, then call "
                "nlp.resume_training again"
            )
        kept = self._rehearsal_model.predict(docs)
        flat = xp2torch(join_rows(self.model.ops.xp, kept))
        before = self._trained(kept, flat, *apart(self._rehearsal_model))
        losses[self.name] += learn(self, docs, drop, lambda now: cross_entropy(before, now))
    if sgd not in (None, False):
        self.finish_update(sgd)
    return losses


def learn(pipe: Any, docs: list[Doc], drop: float, losses: Callable[[Any], Tensor]) -> float:
    """Add the gradients of the mean loss of the sentences of docs; return this mean.

    `losses` computes the losses of sentences, (B,), from their distributions.
    """
    set_dropout_rate(pipe.model, drop)
    scores, backprop = pipe.model.begin_update(docs)
    loss, gradients = differentiate(
        pipe.model,
        scores,
        lambda flat, *own: losses(pipe._trained(scores, flat, *own)).mean(),
        apart(pipe.model),
    )
    backprop(gradients)
    return loss
