"""The k best sums, for the tag sequences of a chain and the analyses of several sentences."""

import math

import numpy
import torch
from numpy.typing import NDArray

from spacy_psa.structs.chain import LinearChain

Ranked = list[tuple[float, NDArray[numpy.int64]]]


def best_sequences(chain: LinearChain, k: int) -> list[Ranked]:
    """Find the k best tag sequences of each sentence of a chain.

    Returns:
        For each sentence, pairs of a log probability and the tags (length,), best first. There
        are fewer than k if the sentence has fewer tag sequences.

    Raises:
        ValueError: if a sentence has no tag sequence.

    Examples:
        >>> chain = LinearChain.from_emissions(torch.zeros(1, 2, 2), torch.tensor([2]))
        >>> (ranked,) = best_sequences(chain, k=10)
        >>> [tags.tolist() for _, tags in ranked]
        [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    # Time and memory grow with k, so ask for no more sequences than there are.
    possible = torch.where(chain.potentials > -torch.inf, 0.0, -torch.inf)
    most = float(LinearChain(possible, chain.lengths).log_partition.max())
    if most < math.log(k):
        k = max(1, round(math.exp(most)))
    found = chain.kbest(k)
    if not all(found):
        raise ValueError("no tag sequence is possible for a sentence of the batch")
    return [[(log_prob, tags.cpu().numpy()) for log_prob, tags in ranked] for ranked in found]


def best_sums(
    lists: list[NDArray[numpy.float64]], k: int
) -> list[tuple[float, NDArray[numpy.int64]]]:
    """Find the k highest sums of one number from each list.

    Args:
        lists: numbers in descending order.
        k: how many sums to find.

    Returns:
        Pairs of a sum and the places of its numbers in their lists, highest sum first; of equal
        sums, the one with the earlier places is first. There are fewer than k if there are fewer
        sums.

    Examples:
        >>> found = best_sums([numpy.array([0.0, -1.0]), numpy.array([0.0, -3.0])], k=3)
        >>> [(total, places.tolist()) for total, places in found]
        [(0.0, [0, 0]), (-1.0, [1, 0]), (-3.0, [0, 1])]
    """
    sums, places = numpy.zeros(1), numpy.zeros((1, 0), dtype="int64")
    for values in lists:
        # The pair of the i-th left and the j-th right number is among the k best only if
        # i * j <= k: as many pairs, counting from 1, are at least as good on both sides.
        counts = [min(len(values), k // (i + 1)) for i in range(min(len(sums), k))]
        left = numpy.repeat(numpy.arange(len(counts)), counts)
        right = numpy.concatenate([numpy.arange(count) for count in counts])
        total = sums[left] + values[right]
        order = numpy.argsort(-total, kind="stable")[:k]
        sums = total[order]
        places = numpy.concatenate([places[left[order]], right[order, None]], 1)
    return list(zip(sums.tolist(), places))
