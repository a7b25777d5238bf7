"""The order in which texts are annotated: the most useful first, refreshed as the model changes."""

import heapq
from collections.abc import Collection, Iterable
from random import Random

from spacy_psa.studio.active_learning.order import Order


class TextQueue:
    """Chooses the next text.

    A text keeps its last value until it is computed by the present model. Texts without a value
    come after those with one, in the order of the file.

    Args:
        numbers: the numbers of the texts.
        order: what comes first.
        seed: of the random order.

    Examples:
        >>> queue = TextQueue([1, 2, 3], Order.entropy)
        >>> queue.put(1, 0.2)
        >>> queue.put(2, 0.5)
        >>> queue.next(done=[]), queue.next(done=[2]), queue.next(done=[1, 2])
        (2, 1, 3)
        >>> queue.stale(2)
        [3]
        >>> queue.renew()
        >>> queue.stale(2), queue.next(done=[])
        ([2, 1], 2)
    """

    def __init__(self, numbers: Iterable[int], order: Order, seed: int = 0):
        self.order = order
        self._version = 0
        self._values = dict.fromkeys(numbers, (-1, float("-inf")))
        if order is Order.random:
            for number in self._values:
                self._values[number] = 0, Random(f"{seed} {number}").random()

    def stale(self, most: int, done: Collection[int] = ()) -> list[int]:
        """Find texts whose value the present model has not computed, the most useful first.

        Args:
            most: how many to find.
            done: texts that are left out.
        """
        if self.order is Order.random:
            return []
        left = (
            n for n, (version, _) in self._values.items()
            if version != self._version and n not in done
        )  # fmt: skip
        return heapq.nsmallest(most, left, key=self._rank)

    def put(self, number: int, value: float) -> None:
        """Keep how useful a text is to the present model."""
        self._values[number] = self._version, value

    def renew(self) -> None:
        """Count all values as those of another model."""
        self._version += 1

    def next(
        self, done: Collection[int], last: dict[int, int] | None = None, taken: Collection[int] = ()
    ) -> int | None:
        """Choose a text.

        Args:
            done: the texts that need nothing.
            last: texts that come after all others, each with its rank among them.
            taken: texts that come only if there are no others at all.

        Returns:
            Its number; None if there is none.
        """
        last = last or {}
        left = (number for number in self._values if number not in done)
        return min(left, key=lambda n: (n in taken, last.get(n, -1), *self._rank(n)), default=None)

    def _rank(self, number: int) -> tuple[float, int]:
        return -self._values[number][1], number
