"""The heaviest set of a number of spans that do not overlap.

Spans that overlap, each with the next one, make a group. Dynamic programming finds the heaviest
set of each size within a group. If the sums of these sets are concave in their size, each step to
the next size is a gain of its own: among the gains of all such groups, the highest ones are taken.
The other groups are added one by one, with every number of spans that they can add. So the time
grows with the number of spans, but for these groups.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy

from spacy_psa.pipeline.chain.span_posteriors import Floats, Integers


def most_apart(starts: Integers, ends: Integers) -> int:
    """Compute the size of the largest set of spans that do not overlap."""
    count, after = 0, 0
    for i in numpy.argsort(ends, kind="stable"):
        if starts[i] >= after:
            count, after = count + 1, ends[i]
    return count


def heaviest_set(
    size: int, weights: Floats, starts: Integers, ends: Integers
) -> tuple[float, list[int]]:
    """Find the spans without overlap, of some number, with the highest sum of weights.

    Args:
        size: the number of spans, at least 1.
        weights: (S,) the weight of each span, at least 0.
        starts: (S,) its first token.
        ends: (S,) the token after its last one.

    Returns:
        The sum, and the places of the spans in the arguments, without order. If there is no such
        set, minus infinity and no span.
    """
    alone, groups = _groups(weights, starts, ends)
    concave, others = list[_Group](), list[_Group]()
    for group in groups:
        (concave if group.concave else others).append(group)
    owners = [numpy.full(len(group.gains), i) for i, group in enumerate(concave)]
    gains = numpy.concatenate([weights[alone], *(group.gains for group in concave)])
    owner = numpy.concatenate([numpy.full(len(alone), -1), *owners])
    item = numpy.concatenate([alone, *owners])
    order = numpy.argsort(-gains, kind="stable")[:size]
    sums = numpy.full(size + 1, -numpy.inf)
    sums[0], sums[1 : len(order) + 1] = 0.0, gains[order].cumsum()
    numbers = list[Integers]()
    for group in others:
        sums, number = _added(sums, group.sums)
        numbers.append(number)
    if sums[size] == -numpy.inf:
        return -numpy.inf, []
    total, chosen = float(sums[size]), list[int]()
    for group, number in zip(reversed(others), reversed(numbers)):
        chosen += group.set_of(number[size])
        size -= number[size]
    taken, owner = item[order[:size]], owner[order[:size]]
    chosen += taken[owner < 0].tolist()
    for i, count in zip(*numpy.unique(owner[owner >= 0], return_counts=True)):
        chosen += concave[i].set_of(count)
    return total, chosen


class _Group(NamedTuple):
    """The heaviest sets of each size of spans that overlap, each with the next one."""

    best: Floats
    """best[i, c]: the highest sum of c spans that are over at the i-th distinct end."""
    last: Integers
    """last[i, c]: the last of these spans if it is over just there, else -1."""
    before: Integers
    """The number of distinct ends up to the start of each span."""
    places: Integers
    """The place of each span among all of them."""

    @classmethod
    def of(cls, places: Integers, weights: Floats, starts: Integers, ends: Integers) -> "_Group":
        """Find the sets of some spans, in the order of their ends."""
        distinct, first = numpy.unique(ends, return_index=True)
        before = numpy.searchsorted(distinct, starts, side="right")
        size = most_apart(starts, ends)
        best = numpy.full((len(distinct) + 1, size + 1), -numpy.inf)
        last = numpy.full((len(distinct) + 1, size + 1), -1)
        best[:, 0] = 0.0
        for i, (a, b) in enumerate(pairwise([*first.tolist(), len(ends)]), start=1):
            values = best[before[a:b], :-1] + weights[a:b, None]
            top = values.argmax(0)
            value = values[top, numpy.arange(size)]
            better = value > best[i - 1, 1:]
            best[i, 1:] = numpy.where(better, value, best[i - 1, 1:])
            last[i, 1:] = numpy.where(better, a + top, -1)
        return cls(best, last, before, places)

    @property
    def sums(self) -> Floats:
        """The highest sum of each number of spans."""
        return self.best[-1]

    @property
    def gains(self) -> Floats:
        """The gain of the highest sum by each span more."""
        return numpy.diff(self.sums)

    @property
    def concave(self) -> bool:
        """Whether no gain is higher than the one before."""
        return bool((numpy.diff(self.gains) <= 0).all())

    def set_of(self, size: int) -> list[int]:
        """Find the places of the spans of the heaviest set of a size."""
        chosen = list[int]()
        i = len(self.best) - 1
        while len(chosen) < size:
            span = self.last[i, size - len(chosen)]
            if span >= 0:
                chosen.append(int(self.places[span]))
            i = self.before[span] if span >= 0 else i - 1
        return chosen


def _groups(weights: Floats, starts: Integers, ends: Integers) -> tuple[Integers, list[_Group]]:
    """Part spans into those that overlap no other one, and groups of those that do.

    Of several spans from the same start to the same end only the heaviest is kept.
    """
    order = numpy.lexsort((-weights, ends, starts))
    first, after = starts[order], ends[order]
    again = (first[1:] == first[:-1]) & (after[1:] == after[:-1])
    order = order[numpy.concatenate([[True], ~again])[: len(order)]]
    first, after = starts[order], ends[order]
    reach = numpy.maximum.accumulate(after)
    new = numpy.flatnonzero(first[1:] >= reach[:-1]) + 1
    cuts = numpy.concatenate([[0], new, [len(order)]])
    sizes = numpy.diff(cuts)
    groups = list[_Group]()
    for i in numpy.flatnonzero(sizes > 1).tolist():
        places = order[cuts[i] : cuts[i + 1]]
        places = places[numpy.argsort(ends[places], kind="stable")]
        groups.append(_Group.of(places, weights[places], starts[places], ends[places]))
    return order[cuts[:-1][sizes == 1]], groups


def _added(sums: Floats, more: Floats) -> tuple[Floats, Integers]:
    """Add up to len(more) - 1 spans to sets: the highest sum of each size, and how many it adds."""
    best, number = numpy.full(len(sums), -numpy.inf), numpy.zeros(len(sums), dtype="int64")
    for count, value in enumerate(more[: len(sums)].tolist()):
        reached = sums[: len(sums) - count] + value
        better = reached > best[count:]
        best[count:][better], number[count:][better] = reached[better], count
    return best, number
