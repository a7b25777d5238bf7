"""The n best of a sum: of a chain's sequences, and of the analyses of several sentences."""

import math

import numpy
import torch
from numpy.typing import NDArray

from spacy_psa.structs.chain import LinearChain

Ranked = tuple[NDArray[numpy.float64], list[NDArray[numpy.int64]]]


def best_sequences(chain: LinearChain, n: int) -> list[Ranked]:
    """For each sentence of a chain the log probabilities of its n best tag sequences, best
    first, and the sequences; all of them where there are fewer.

    Errors: ValueError where a sentence has none.
    """
    # No more than there are: time and memory grow with what is asked for.
    possible = torch.where(chain.potentials > -torch.inf, 0.0, -torch.inf)
    most = float(LinearChain(possible, chain.lengths).log_partition.max())
    if most < math.log(n):
        n = max(1, round(math.exp(most)))
    tags, log_probs = chain.kbest(n)
    if bool((log_probs[:, 0] == -torch.inf).any()):
        raise ValueError("no tag sequence is possible for some sentence")
    found = []
    for row, scores, length in zip(
        tags.cpu().numpy(), log_probs.double().cpu().numpy(), chain.lengths.tolist()
    ):
        there = int((scores > -numpy.inf).sum())
        found.append((scores[:there], [sequence[:length] for sequence in row[:there]]))
    return found


def best_sums(
    lists: list[NDArray[numpy.float64]], n: int
) -> list[tuple[float, NDArray[numpy.int64]]]:
    """The n highest sums of one number of each list, highest first, and the places of the
    numbers in their lists; all of them where there are fewer.

    lists: each in descending order. Of equal sums that of the earlier places comes first.
    """
    sums, places = numpy.zeros(1), numpy.zeros((1, 0), dtype="int64")
    for values in lists:
        # A pair is among the n best only if no n pairs are at least as good on both sides.
        counts = [min(len(values), n // (i + 1)) for i in range(min(len(sums), n))]
        left = numpy.repeat(numpy.arange(len(counts)), counts)
        right = numpy.concatenate([numpy.arange(count) for count in counts])
        total = sums[left] + values[right]
        order = numpy.argsort(-total, kind="stable")[:n]
        sums = total[order]
        places = numpy.concatenate([places[left[order]], right[order, None]], 1)
    return list(zip(sums.tolist(), places))
