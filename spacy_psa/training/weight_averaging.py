"""Stochastic weight averaging: a model whose weights are the mean of many steps of one training."""

from dataclasses import dataclass

from thinc.api import Optimizer

from spacy_psa.bridge.optimizer import TensorOptimizer
from spacy_psa.errors import InputError, check_sizes, naming


@dataclass(frozen=True)
class EqualShares:
    """The decay of an average in which all updates after the first `start` count alike.

    Until then, the average is the present weights.

    Args:
        start: number of updates that are left out.

    Examples:
        >>> decay = EqualShares(start=2)
        >>> [round(decay(update), 2) for update in range(1, 7)]
        [0.0, 0.0, 0.0, 0.5, 0.67, 0.75]
    """

    start: int

    def __call__(self, updates: int) -> float:
        """The share of the average that stays in the update of this number, counted from 1."""
        counted = max(1, updates - self.start)
        return (counted - 1) / counted


def stochastic_weight_averaging(optimizer: Optimizer, start: int) -> TensorOptimizer:
    """Build the optimizer `SWA.v1`, which averages the weights of the later part of a training.

    After `start` updates, it keeps the mean of the weights of all updates that follow, each with
    the same share. Evaluations score this mean, and it is saved; training goes on with the weights
    as they are (Izmailov2018, Algorithm 1, with a cycle of one update). Evaluations before that
    score the present weights. `use_averages` of the optimizer has no effect.

    Izmailov2018 keeps the learning rate constant, or lets it rise and fall in cycles, while it
    averages. benchmarks/recipes compares this with a rate that comes down to 0.

    Args:
        optimizer: one of the optimizers of spacy-psa, which makes the steps.
        start: number of updates before the first one that counts, for instance three quarters of
            `training.max_steps`.

    Returns:
        The same optimizer, which now averages.

    Raises:
        InputError: if `start` is below 0, or the optimizer is none of spacy-psa's.

    Examples:
        >>> import torch
        >>> from spacy_psa.training.optimizers import sgd
        >>> optimizer = stochastic_weight_averaging(sgd(1.0, momentum=0.0), start=1)
        >>> module = torch.nn.Linear(1, 1, bias=False)
        >>> _ = torch.nn.init.zeros_(module.weight)
        >>> for _ in range(3):  # the weight becomes -1, -2 and -3
        ...     module.weight.grad = torch.ones(1, 1)
        ...     optimizer.update_module(0, module)
        >>> optimizer.averages[0, "weight"].item()
        -2.5
    """
    with naming("SWA.v1"):
        check_sizes(least=0, start=start)
    if not isinstance(optimizer, TensorOptimizer):
        raise InputError(
            f"SWA.v1: the optimizer is a {type(optimizer).__module__}.{type(optimizer).__name__}: "
            "take one of spacy-psa, such as spacy-psa.AdamW.v1"
        )
    optimizer.averages = {}
    optimizer.average_decay = EqualShares(start)
    return optimizer
