"""The k best of a sum: of a chain's sequences, and of the analyses of several sentences."""

import math

import numpy
import torch
from numpy.typing import NDArray

from spacy_psa.structs.chain import LinearChain

Ranked = list[tuple[float, NDArray[numpy.int64]]]


def best_sequences(chain: LinearChain, k: int) -> list[Ranked]:
    """For each sentence of a chain its k best tag sequences as (log probability, tags), best
    first; all of them where there are fewer.

    Raises ValueError where a sentence has none.
    """
    # No more than there are: time and memory grow with what is asked for.
    possible = torch.where(chain.potentials > -torch.inf, 0.0, -torch.inf)
    most = float(LinearChain(possible, chain.lengths).log_partition.max())
    if most < math.log(k):
        k = max(1, round(math.exp(most)))
    found = chain.kbest(k)
    if not all(found):
        raise ValueError("no tag sequence is possible for some sentence")
    return [[(log_prob, tags.cpu().numpy()) for log_prob, tags in ranked] for ranked in found]


def best_sums(
    lists: list[NDArray[numpy.float64]], k: int
) -> list[tuple[float, NDArray[numpy.int64]]]:
    """The k highest sums of one number of each list, highest first, and the places of the
    numbers in their lists; all of them where there are fewer.

    lists: each in descending order. Of equal sums that of the earlier places comes first.
    """
    sums, places = numpy.zeros(1), numpy.zeros((1, 0), dtype="int64")
    for values in lists:
        # A pair is among the k best only if no k pairs are at least as good on both sides.
        counts = [min(len(values), k // (i + 1)) for i in range(min(len(sums), k))]
        left = numpy.repeat(numpy.arange(len(counts)), counts)
        right = numpy.concatenate([numpy.arange(count) for count in counts])
        total = sums[left] + values[right]
        order = numpy.argsort(-total, kind="stable")[:k]
        sums = total[order]
        places = numpy.concatenate([places[left[order]], right[order, None]], 1)
    return list(zip(sums.tolist(), places))
