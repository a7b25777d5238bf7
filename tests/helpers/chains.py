"""Tag sequences one by one, to compare `LinearChain` with."""

import itertools
import math
from typing import Any, NamedTuple

import numpy
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from tests.helpers.structs import INF


class Sequence(NamedTuple):
    tags: tuple[int, ...]
    score: float


def enumerate_sequences(potentials: Tensor, length: int) -> list[Sequence]:
    """Every possible sequence of a sentence with its score, best first."""
    rows = potentials.detach().double().tolist()
    count = potentials.shape[-1]
    sequences = []
    for tags in itertools.product(range(count), repeat=length):
        score = rows[0][0][tags[0]]
        for t in range(1, length):
            score += rows[t][tags[t - 1]][tags[t]]
        if score > -INF:
            sequences.append(Sequence(tags, score))
    return sorted(sequences, key=lambda s: (-s.score, s.tags[::-1]))


def log_total(sequences: list[Sequence]) -> float:
    """The log of the sum of exp(score), -inf of none."""
    if not sequences:
        return -INF
    top = sequences[0].score
    return top + math.log(sum(math.exp(s.score - top) for s in sequences))


def unread(lengths: Tensor, n: int, k: int) -> Tensor:
    """(B, n, K, K) bool, true where potentials must not be read."""
    result = (torch.arange(n) >= lengths[:, None])[:, :, None, None].repeat(1, 1, k, k)
    result[:, 0, 1:] = True
    return result


def random_potentials(
    lengths: Tensor,
    k: int,
    *,
    seed: int = 0,
    excluded: float = 0.0,
    scale: float = 1.5,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Normal scores with a share of -inf, and NaN wherever nothing may be read."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), int(lengths.max()), k, k)
    potentials = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    potentials[torch.rand(shape, generator=generator) < excluded] = -INF
    potentials[unread(lengths, shape[1], k)] = math.nan
    return potentials.to(dtype)


@st.composite
def pairs_and_lengths(draw: Any, most: int) -> tuple[NDArray[numpy.bool_], Tensor, int]:
    """Draw the legal pairs of at most some number of tags, lengths of sentences, and a seed.

    Each tag may follow at least one other.
    """
    tags, share = draw(st.integers(1, most)), draw(st.floats(0.2, 1.0))
    seed = draw(st.integers(0, 10_000))
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    generator = numpy.random.default_rng(seed)
    legal = generator.random((tags, tags)) < share
    legal[generator.integers(tags, size=tags), numpy.arange(tags)] = True
    return legal, torch.tensor(lengths), seed
