"""Heads that turn token vectors into the potentials of a chain (Wei2020 section 3, Eq. 1-2).

Each head takes `z`, (N, d), of a ragged batch. For each token it returns either K scores, if the
tags are independent of each other, or K * K log potentials log phi(y', y, z_j), row-major in
(y', y). The first token of a sentence has no tag before it: its potentials are in row y' = 0, and
the other rows are not read.
"""

import torch
from torch import Tensor, nn


def _place_start(pairs: Tensor, start: Tensor, lengths: Tensor) -> Tensor:
    """Write the (B, K) scores of the first tokens into row 0 of (N, K, K) pairs."""
    first = (torch.cumsum(lengths, 0) - lengths).to(pairs.device)
    return pairs.index_put((first, torch.zeros_like(first)), start)


class LabelPair(nn.Module):
    """Scores each pair of neighbouring tags by a weight vector of its own: (N, d) -> (N, K * K).

        phi(y', y, z) = exp(W[y', y]·z + b[y', y])                      (Wei2020 Eq. 2)

    The start of a sentence is a label of its own, which only y' can be. The head has about
    K * K * d parameters and returns N * K * K scores. For many labels, `EmissionTransition` is
    smaller.

    Args:
        input_width: d, the width of the token vectors.
        labels: K, the number of tags.

    Examples:
        >>> head = LabelPair(input_width=16, labels=5)
        >>> head(torch.randn(7, 16), torch.tensor([4, 3])).shape
        torch.Size([7, 25])
    """

    def __init__(self, input_width: int, labels: int):
        super().__init__()
        self.labels = labels
        self.pair = nn.Linear(input_width, labels * labels)
        self.start = nn.Linear(input_width, labels)
        # Glorot's rule with fan-out K, not K * K: each pair of labels has a vector of its own.
        for layer in (self.pair, self.start):
            bound = (6.0 / (input_width + labels)) ** 0.5
            nn.init.uniform_(layer.weight, -bound, bound)
            nn.init.zeros_(layer.bias)

    def forward(self, z: Tensor, lengths: Tensor) -> Tensor:
        """Compute the potentials of z (N, d) of sentences of `lengths` (B,) -> (N, K * K)."""
        k = self.labels
        first = (torch.cumsum(lengths, 0) - lengths).to(z.device)
        pairs = self.pair(z).view(-1, k, k)
        return _place_start(pairs, self.start(z[first]), lengths).view(-1, k * k)


class EmissionTransition(nn.Module):
    """Scores each tag and, apart from that, each pair of tags: (N, d) -> (N, K * K).

        log phi(y', y, z) = (U z + c)[y] + T[y', y]                     (Yan2019 Eq. 21)

    A score for starting and one for ending with a tag are added at the first and the last token.
    This is the usual CRF layer (Lample et al. 2016). It has K * (d + K + 3) parameters.

    Args:
        input_width: d, the width of the token vectors.
        labels: K, the number of tags.

    Examples:
        >>> head = EmissionTransition(input_width=16, labels=5)
        >>> head(torch.randn(7, 16), torch.tensor([4, 3])).shape
        torch.Size([7, 25])
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
        """Compute the potentials of z (N, d) of sentences of `lengths` (B,) -> (N, K * K)."""
        ends = torch.cumsum(lengths, 0).to(z.device)
        emission = self.emission(z)
        emission = emission.index_put((ends - 1,), self.end, accumulate=True)
        pairs = emission[:, None, :] + self.transition
        first = ends - lengths.to(z.device)
        return _place_start(pairs, emission[first] + self.start, lengths).flatten(1)


class Emission(nn.Module):
    """Scores each tag independently of the other tags: (N, d) -> (N, K).

        log p(y | z) = log softmax(U z + c)[y]         (Wei2020 Table 9 model 5; Li2019 section 3.2)

    Args:
        input_width: d, the width of the token vectors.
        labels: K, the number of tags.

    Examples:
        >>> head = Emission(input_width=16, labels=5)
        >>> log_probs = head(torch.randn(7, 16), torch.tensor([4, 3]))
        >>> torch.allclose(log_probs.exp().sum(1), torch.ones(7))
        True
    """

    def __init__(self, input_width: int, labels: int):
        super().__init__()
        self.emission = nn.Linear(input_width, labels)
        nn.init.xavier_uniform_(self.emission.weight)
        nn.init.zeros_(self.emission.bias)

    def forward(self, z: Tensor, lengths: Tensor) -> Tensor:
        """Compute log p(y | z) from z (N, d) of sentences of `lengths` (B,) -> (N, K)."""
        return torch.log_softmax(self.emission(z), -1)
