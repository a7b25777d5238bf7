"""Learning rate schedules of the papers, as thinc takes them: endless iterables."""

from collections.abc import Iterator
from itertools import count

from spacy_psa.errors import InputError


def inverse_decay(initial_rate: float, decay: float, steps_per_epoch: int) -> Iterator[float]:
    """`inverse_decay.v1`: lr_t = initial_rate / (1 + decay * t), t = epochs completed
    (Wei2020 section 5.2: 0.015 for NER, decay 0.05).

    steps_per_epoch: batches in one pass over the training data; spaCy's loop does
    not tell an optimizer the epoch.
    """
    if steps_per_epoch < 1:
        raise InputError(f"inverse_decay.v1: steps_per_epoch is {steps_per_epoch}, take 1 or more")
    return _inverse_decay(initial_rate, decay, steps_per_epoch)


def _inverse_decay(initial_rate: float, decay: float, steps_per_epoch: int) -> Iterator[float]:
    step = 0
    while True:
        yield initial_rate / (1.0 + decay * (step // steps_per_epoch))
        step += 1


def triangular(max_rate: float, total_steps: int, warmup: float = 0.01) -> Iterator[float]:
    """`triangular.v1`: up from 0 to `max_rate` in the first part of the updates, and
    down to 0 in the rest (Yan2019 section 4.1: 1% and 99%; Smith 2017).

    The s-th update, s = 1, 2, …, of S = total_steps with w = warmup * S has the rate
        max_rate * s / w                for s <= w
        max_rate * (S - s) / (S - w)    for w < s <= S
    and each one after these 0.

    total_steps: updates of the whole training, epochs times batches in an epoch.
    warmup: the share of them in which the rate rises, 0 or more and less than 1.
    """
    if total_steps < 1 or not 0 <= warmup < 1:
        raise InputError(
            f"triangular.v1: total_steps is {total_steps} and warmup {warmup}; "
            "take 1 or more steps, and a warmup from 0 to less than 1"
        )
    return _triangular(max_rate, total_steps, warmup * total_steps)


def _triangular(max_rate: float, total: int, rising: float) -> Iterator[float]:
    for step in count(1):
        if step <= rising:
            yield max_rate * step / rising
        else:
            yield max_rate * max(0, total - step) / (total - rising)
