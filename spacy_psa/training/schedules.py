"""Learning rate schedules of the papers, as thinc takes them: endless iterables."""

from collections.abc import Iterator

from spacy_psa.errors import InputError


def inverse_decay(initial_rate: float, decay: float, steps_per_epoch: int) -> Iterator[float]:
    """`inverse_decay.v1`: lr_t = initial_rate / (1 + decay * t), t = epochs completed
    (J section 5.2: 0.015 for NER, decay 0.05).

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
