"""Learning rate schedules of the papers: endless iterables of rates, one for each update."""

from collections.abc import Callable, Iterator
from itertools import count
from math import cos, pi

from spacy_psa.errors import check_amounts, check_rates, check_sizes, naming


def inverse_decay(initial_rate: float, decay: float, steps_per_epoch: int) -> Iterator[float]:
    """Build the schedule `inverse_decay.v1`, in which the learning rate falls with each epoch.

    With t the number of completed epochs, the rate is

        initial_rate / (1 + decay * t).

    Wei2020 (section 5.2) has an initial rate of 0.015 for NER and a decay of 0.05.

    Args:
        initial_rate: the rate in the first epoch.
        decay: how fast the rate falls.
        steps_per_epoch: number of batches in one pass over the training data; spaCy's loop does
            not tell the epoch to an optimizer.

    Raises:
        InputError: if `steps_per_epoch` is below 1, or another number below 0.

    Examples:
        >>> schedule = inverse_decay(0.1, decay=1.0, steps_per_epoch=2)
        >>> [next(schedule) for _ in range(4)]
        [0.1, 0.1, 0.05, 0.05]
    """
    with naming("inverse_decay.v1"):
        check_sizes(steps_per_epoch=steps_per_epoch)
        check_amounts(initial_rate=initial_rate, decay=decay)
    return _inverse_decay(initial_rate, decay, steps_per_epoch)


def _inverse_decay(initial_rate: float, decay: float, steps_per_epoch: int) -> Iterator[float]:
    step = 0
    while True:
        yield initial_rate / (1.0 + decay * (step // steps_per_epoch))
        step += 1


def triangular(max_rate: float, total_steps: int, warmup: float = 0.01) -> Iterator[float]:
    """Build the schedule `triangular.v1`, in which the learning rate rises from 0 and falls to 0.

    With S = total_steps and w = warmup * S, the rate of the s-th update, s = 1, 2, …, is

        max_rate * s / w                for s <= w
        max_rate * (S - s) / (S - w)    for w < s <= S

    and 0 after that. Yan2019 (section 4.1, after Smith 2017) lets it rise in the first 1% of the
    updates.

    Args:
        max_rate: the highest rate.
        total_steps: number of updates of the whole training: epochs times batches in an epoch.
        warmup: share of the updates in which the rate rises, from 0 to less than 1.

    Raises:
        InputError: if `total_steps` is below 1, `max_rate` below 0, or `warmup` not from 0 to less
            than 1.

    Examples:
        >>> schedule = triangular(1.0, total_steps=4, warmup=0.5)
        >>> [next(schedule) for _ in range(5)]
        [0.5, 1.0, 0.5, 0.0, 0.0]
    """
    rising = _rising("triangular.v1", max_rate, total_steps, warmup)

    def fall(step: int) -> float:
        return max_rate * max(0, total_steps - step) / (total_steps - rising)

    return _rise_and_fall(max_rate, rising, fall)


def cosine(max_rate: float, total_steps: int, warmup: float = 0.01) -> Iterator[float]:
    """Build the schedule `cosine.v1`, in which the learning rate falls as a cosine from 0 to π.

    With S = total_steps and w = warmup * S, the rate of the s-th update, s = 1, 2, …, is

        max_rate * s / w                                        for s <= w
        max_rate * (1 + cos(π * (s - w) / (S - w))) / 2         for w < s <= S

    and 0 after that (Loshchilov and Hutter 2017, Eq. 5, after a rise).

    Args:
        max_rate: the highest rate.
        total_steps: number of updates of the whole training: epochs times batches in an epoch.
        warmup: share of the updates in which the rate rises, from 0 to less than 1.

    Raises:
        InputError: if `total_steps` is below 1, `max_rate` below 0, or `warmup` not from 0 to less
            than 1.

    Examples:
        >>> schedule = cosine(1.0, total_steps=4, warmup=0.5)
        >>> [round(next(schedule), 6) for _ in range(5)]
        [0.5, 1.0, 0.5, 0.0, 0.0]
    """
    rising = _rising("cosine.v1", max_rate, total_steps, warmup)

    def fall(step: int) -> float:
        share = min(1.0, (step - rising) / (total_steps - rising))
        return max_rate * (1 + cos(pi * share)) / 2

    return _rise_and_fall(max_rate, rising, fall)


def _rising(name: str, max_rate: float, total_steps: int, warmup: float) -> float:
    """The number of updates in which the rate rises."""
    with naming(name):
        check_amounts(max_rate=max_rate)
        check_sizes(total_steps=total_steps)
        check_rates(below_one=True, warmup=warmup)
    return warmup * total_steps


def _rise_and_fall(max_rate: float, rising: float, fall: Callable[[int], float]) -> Iterator[float]:
    for step in count(1):
        yield max_rate * step / rising if step <= rising else fall(step)
