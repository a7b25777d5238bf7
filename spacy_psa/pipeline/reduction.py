"""The loss of a batch from those of its sentences, also where it is computed in parts."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from spacy.training import Example
from torch import Tensor

from spacy_psa.sentences import sentence_bounds

Reduction = Literal["mean", "sum"]


def reduced(pipe: Any, losses: Tensor) -> Tensor:
    """Reduce the losses (B,) of the sentences of an update to their mean, or to their sum.

    The mean is over all sentences of `pipe._whole`, if the update is a part of that batch.
    """
    if pipe._reduction == "sum":
        return losses.sum()
    return losses.sum() / (sentence_count(pipe._whole) if pipe._whole else len(losses))


def loss_share(pipe: Any, part: Sequence[Example], whole: Sequence[Example]) -> float:
    """Compute the weight of the loss of a part of a batch in the loss of the whole batch.

    Where several processes train, each computes the loss of its part. The loss is a mean over
    sentences, so a part counts by its number of sentences; or it is a sum.
    """
    if pipe._reduction == "sum":
        return 1.0
    count = sentence_count(whole)
    return sentence_count(part) / count if count else 0.0


def sentence_count(examples: Iterable[Example]) -> int:
    """Count the sentences of predicted docs, without those that have no tokens."""
    return sum(len(sentence_bounds(eg.predicted)) for eg in examples if len(eg.predicted))
