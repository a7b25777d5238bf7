"""Functions for the figures on the page of this experiment."""

from benchmarks.lookup import Lookup

_records = Lookup("systems")


def largest_difference_of_losses() -> float:
    """By how much the training loss differs with a higher rate, from the second epoch on, in %."""
    ratios = [
        _records.loss_at("conll2003-tener-high_rate", epoch)
        / _records.loss_at("conll2003-tener", epoch)
        for epoch in range(2, 16)
    ]
    return 100 * max(abs(ratio - 1) for ratio in ratios)
