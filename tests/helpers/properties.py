"""Properties that are checked on a share of SPACY_PSA_CASES cases."""

import os
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

from hypothesis import HealthCheck, given, settings

CASES = int(os.environ.get("SPACY_PSA_CASES", "300"))
"""The number of cases of all properties together; their shares sum up to 1."""
COUNTS: Counter[str] = Counter()
"""The cases that were checked so far, by the name of the test."""


def cases(share: float, **strategies: Any) -> Callable[[Callable], Callable]:
    """Check a test on a share of the cases; they are the same in each run."""

    def decorate(test: Callable) -> Callable:
        @wraps(test)
        def counted(**given_: Any) -> None:
            COUNTS[test.__name__] += 1
            test(**given_)

        chosen = settings(
            max_examples=round(CASES * share),
            derandomize=True,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        return chosen(given(**strategies)(counted))

    return decorate
