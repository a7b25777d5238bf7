"""Heads that turn token vectors into the potentials of a chain (Wei2020 section 3, Eq. 1-2).

For each token vector z_j, (d,), of a ragged batch, a head returns either K scores, if the tags are
independent of each other, or log potentials log phi(y', y, z_j) of pairs of tags: of all K * K
pairs, row-major in (y', y), or only of the legal pairs, sorted by y, then by y'. The first token of
a sentence has no tag before it. The score of starting with y is in the place of the pair (0, y), or
of the first legal pair with y; the other places are not read.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spacy_psa.modules.initialization import WithoutDraws
from spacy_psa.modules.products import Precision, multipliers
from spacy_psa.ragged import to_device


class _Pairs(nn.Module):
    """Base class of the heads for pairs of tags, which knows the pairs that they score.

    Args:
        labels: K, the number of tags.
        pairs: the legal pairs (y', y), sorted by y, then by y'; None for all pairs by y', then y.
    """

    previous: Tensor
    tag: Tensor
    starts: Tensor

    def __init__(self, labels: int, pairs: Sequence[Sequence[int]] | None, precision: Precision):
        super().__init__()
        self.labels = labels
        self.precision: Precision = precision
        if pairs is None:
            previous, tag = torch.cartesian_prod(torch.arange(labels), torch.arange(labels)).T
            starts = torch.arange(labels)
        else:
            previous, tag = torch.tensor(pairs).T
            starts = torch.searchsorted(tag.contiguous(), torch.arange(labels))
        self.kept = None if pairs is None else previous * labels + tag
        # Buffers move with the module to a GPU, and these need not be saved.
        for name, value in (("previous", previous), ("tag", tag), ("starts", starts)):
            self.register_buffer(name, value.contiguous(), persistent=False)

    def place_start(self, scores: Tensor, start: Tensor, first: Tensor) -> Tensor:
        """Write the scores (B, K) of the first tokens to their places in `scores` (N, pairs)."""
        return scores.index_put_((first[:, None], self.starts[None, :]), start)

    def by_tag(self, scores: Tensor) -> Tensor:
        """Sum over the tags before each tag, in log space: (..., pairs) -> (..., K)."""
        most = scores.amax(-1, keepdim=True)
        sums = scores.new_zeros(*scores.shape[:-1], self.labels)
        return most + sums.index_add(-1, self.tag, (scores - most).exp()).log()


class LabelPair(_Pairs):
    """Scores each pair of neighbouring tags by a weight vector of its own: (N, d) -> (N, K * K).

        phi(y', y, z) = exp(W[y', y]·z + b[y', y])                      (Wei2020 Eq. 2)

    The start of a sentence is a label of its own, which only y' can be. The head has about
    K * K * d parameters and returns N * K * K scores. With `pairs`, it has only the parameters of
    the P legal pairs, and returns (N, P); weights start as they would for all pairs. For many
    labels, `EmissionTransition` is smaller.

    Examples:
        >>> head = LabelPair(input_width=16, labels=5)
        >>> head(torch.randn(7, 16), torch.tensor([4, 3])).shape
        torch.Size([7, 25])
    """

    def __init__(
        self,
        input_width: int,
        labels: int,
        pairs: Sequence[Sequence[int]] | None = None,
        precision: Precision = "float32",
    ):
        super().__init__(labels, pairs, precision)
        if pairs is None:
            self.pair = nn.Linear(input_width, labels * labels)
        else:
            with WithoutDraws():  # `nn.utils.skip_init` would import sympy
                self.pair = nn.Linear(input_width, len(pairs))
            # An `nn.Linear` of all pairs would draw these, and a seed keeps its weights.
            self._draw(1.0)
            torch.empty(labels * labels).uniform_()
        self.start = nn.Linear(input_width, labels)
        # Glorot's rule with fan-out K, not K * K: each pair of labels has a vector of its own.
        bound = (6.0 / (input_width + labels)) ** 0.5
        if pairs is None:
            nn.init.uniform_(self.pair.weight, -bound, bound)
        else:
            self._draw(bound)
        nn.init.uniform_(self.start.weight, -bound, bound)
        for layer in (self.pair, self.start):
            nn.init.zeros_(layer.bias)

    def _draw(self, bound: float) -> None:
        """Draw the weights of all K * K pairs in their order, but only store those of `pairs`."""
        weight, counts = self.pair.weight.data, torch.bincount(self.previous, minlength=self.labels)
        drawn = torch.empty(self.labels, weight.shape[1])
        for places in torch.argsort(self.previous, stable=True).split(counts.tolist()):
            weight[places] = drawn.uniform_(-bound, bound)[self.tag[places]]

    def forward(self, z: Tensor, lengths: Tensor) -> Tensor:
        """Compute the potentials of z (N, d) of sentences of `lengths` (B,) -> (N, pairs)."""
        first = to_device(torch.cumsum(lengths, 0) - lengths, z.device)
        pair, start = multipliers(self.precision, z, self.pair, self.start)
        return self.place_start(pair(z), start(z[first]), first)

    def uncertainty(self, z: Tensor) -> Tensor:
        """Compute how uncertain the tag of each token is if all tags before it count alike.

        It is the entropy of p(y) ∝ Σ_y' phi(y', y, z), as a share of log K: from 0 for one possible
        tag to 1 for K tags of the same probability: (N, d) -> (N,).
        """
        return _entropy(self.by_tag(multipliers(self.precision, z, self.pair)[0](z)))


class EmissionTransition(_Pairs):
    """Scores each tag and, apart from that, each pair of tags: (N, d) -> (N, K * K).

        log phi(y', y, z) = (U z + c)[y] + T[y', y]                     (Yan2019 Eq. 21)

    A score for starting and one for ending with a tag are added at the first and the last token.
    This is the usual CRF layer (Lample et al. 2016). It has K * (d + K + 3) parameters. With
    `pairs`, it returns only the scores of the P legal pairs, (N, P). With `keep_apart`, it
    returns those of tags, (N, K), with the start and the end, but without T.

    Examples:
        >>> head = EmissionTransition(input_width=16, labels=5)
        >>> head(torch.randn(7, 16), torch.tensor([4, 3])).shape
        torch.Size([7, 25])
    """

    def __init__(
        self,
        input_width: int,
        labels: int,
        pairs: Sequence[Sequence[int]] | None = None,
        precision: Precision = "float32",
        keep_apart: bool = False,
    ):
        super().__init__(labels, pairs, precision)
        self.keep_apart = keep_apart
        self.emission = nn.Linear(input_width, labels)
        self.transition = nn.Parameter(torch.empty(labels, labels))
        self.start = nn.Parameter(torch.zeros(labels))
        self.end = nn.Parameter(torch.zeros(labels))
        nn.init.xavier_uniform_(self.emission.weight)
        nn.init.zeros_(self.emission.bias)
        nn.init.xavier_uniform_(self.transition)

    def forward(self, z: Tensor, lengths: Tensor) -> Tensor:
        """Compute the potentials of z (N, d) of sentences of `lengths` (B,) -> (N, pairs)."""
        ends = to_device(torch.cumsum(lengths, 0), z.device)
        emission = multipliers(self.precision, z, self.emission)[0](z)
        emission = emission.index_put((ends - 1,), self.end, accumulate=True)
        first = ends - to_device(lengths, z.device)
        if self.keep_apart:
            return emission.index_put((first,), self.start, accumulate=True)
        if self.kept is None:  # the tags need not be looked up
            scores = (emission[:, None, :] + self.transition).flatten(1)
        else:
            scores = emission[:, self.tag] + self.transition[self.previous, self.tag]
        return self.place_start(scores, emission[first] + self.start, first)

    @property
    def apart(self) -> list[nn.Parameter]:
        """The parameters that the output lacks: T (K, K), or none."""
        return [self.transition] if self.keep_apart else []

    def uncertainty(self, z: Tensor) -> Tensor:
        """Compute how uncertain the tag of each token is, (N, d) -> (N,); see `LabelPair`."""
        transition = self.by_tag(self.transition[self.previous, self.tag])
        return _entropy(multipliers(self.precision, z, self.emission)[0](z) + transition)


class Emission(nn.Module):
    """Scores each tag independently of the other tags: (N, d) -> (N, K).

        log p(y | z) = log softmax(U z + c)[y]         (Wei2020 Table 9 model 5; Li2019 section 3.2)

    Examples:
        >>> head = Emission(input_width=16, labels=5)
        >>> log_probs = head(torch.randn(7, 16), torch.tensor([4, 3]))
        >>> torch.allclose(log_probs.exp().sum(1), torch.ones(7))
        True
    """

    def __init__(self, input_width: int, labels: int, precision: Precision = "float32"):
        super().__init__()
        self.precision: Precision = precision
        self.emission = nn.Linear(input_width, labels)
        nn.init.xavier_uniform_(self.emission.weight)
        nn.init.zeros_(self.emission.bias)

    def forward(self, z: Tensor, lengths: Tensor) -> Tensor:
        """Compute log p(y | z) from z (N, d) of sentences of `lengths` (B,) -> (N, K)."""
        return torch.log_softmax(multipliers(self.precision, z, self.emission)[0](z), -1)

    def uncertainty(self, z: Tensor) -> Tensor:
        """Compute the entropy of p(y | z) as a share of log K: (N, d) -> (N,)."""
        return _entropy(multipliers(self.precision, z, self.emission)[0](z))


def _entropy(scores: Tensor) -> Tensor:
    """Compute the entropy of softmax(scores) as a share of log K: (N, K) -> (N,)."""
    entropy = torch.special.entr(torch.softmax(scores, -1)).sum(-1)
    return (entropy / math.log(max(scores.shape[-1], 2))).clamp(max=1.0)
