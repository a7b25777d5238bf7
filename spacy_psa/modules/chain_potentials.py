"""Heads: token vectors to the potentials of a chain (Wei2020 section 3, Eq 1-2).

Each takes `z: (N, d)` of a ragged batch and returns, per token, either K
scores (tags independent of each other) or K * K log potentials
log phi(y', y, z_j), row-major in (y', y). A sentence's first token has no tag
before it: its potentials stand in row y' = 0 and the other rows are not read.
"""

import torch
from torch import Tensor, nn


def _place_start(pairs: Tensor, start: Tensor, lengths: Tensor) -> Tensor:
    """Write the (B, K) scores of the first tokens into row 0 of (N, K, K) pairs."""
    first = (torch.cumsum(lengths, 0) - lengths).to(pairs.device)
    return pairs.index_put((first, torch.zeros_like(first)), start)


class LabelPair(nn.Module):
    """phi(y', y, z) = exp(W[y', y] . z + b[y', y]), a weight vector a label pair (Wei2020 Eq 2).

    The start of a sentence is a label of its own that only y' can take. Costs
    K * K * d parameters and N * K * K scores: for many labels see `EmissionTransition`.
    """

    def __init__(self, input_width: int, labels: int):
        super().__init__()
        self.labels = labels
        self.pair = nn.Linear(input_width, labels * labels)
        self.start = nn.Linear(input_width, labels)
        # Each label pair is a row vector of its own, so fan-out is the labels' number.
        for layer in (self.pair, self.start):
            bound = (6.0 / (input_width + labels)) ** 0.5
            nn.init.uniform_(layer.weight, -bound, bound)
            nn.init.zeros_(layer.bias)

    def forward(self, z: Tensor, lengths: Tensor) -> Tensor:
        """(N, d) -> (N, K * K)."""
        k = self.labels
        first = (torch.cumsum(lengths, 0) - lengths).to(z.device)
        pairs = self.pair(z).view(-1, k, k)
        return _place_start(pairs, self.start(z[first]), lengths).view(-1, k * k)


class EmissionTransition(nn.Module):
    """log phi(y', y, z) = (U z + c)[y] + T[y', y], with scores for start and end.

    The usual CRF layer (Lample et al. 2016; Yan2019 Eq 21): K * (d + K + 3) parameters.
    """

    def __init__(self, input_width: int, labels: int):
        super().__init__()
        self.labels = labels
        self.emission = nn.Linear(input_width, labels)
        self.transition = nn.Parameter(torch.empty(labels, labels))
        self.start = nn.Parameter(torch.zeros(labels))
        self.end = nn.Parameter(torch.zeros(labels))
        nn.init.xavier_uniform_(self.emission.weight)
        nn.init.zeros_(self.emission.bias)
        nn.init.xavier_uniform_(self.transition)

    def forward(self, z: Tensor, lengths: Tensor) -> Tensor:
        """(N, d) -> (N, K * K)."""
        ends = torch.cumsum(lengths, 0).to(z.device)
        emission = self.emission(z)
        emission = emission.index_put((ends - 1,), self.end, accumulate=True)
        pairs = emission[:, None, :] + self.transition
        first = ends - lengths.to(z.device)
        return _place_start(pairs, emission[first] + self.start, lengths).flatten(1)


class Emission(nn.Module):
    """Independent tags: log softmax(U z + c) (Wei2020 Table 9 model 5; Li2019 section 3.2)."""

    def __init__(self, input_width: int, labels: int):
        super().__init__()
        self.emission = nn.Linear(input_width, labels)
        nn.init.xavier_uniform_(self.emission.weight)
        nn.init.zeros_(self.emission.bias)

    def forward(self, z: Tensor, lengths: Tensor) -> Tensor:
        """(N, d) -> (N, K)."""
        return torch.log_softmax(self.emission(z), -1)
