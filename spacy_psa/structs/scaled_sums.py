"""Forward-backward of linear chains that keep scores of tags and of pairs of tags apart."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from spacy_psa.ragged import positions, to_device
from spacy_psa.structs.pair_chain import TagPairs

SPREAD = 500.0
"""The most that transitions to a tag may differ by in a scaled sum, so that it never underflows."""


class ScaledSums:
    """Forward-backward of an `EmissionChain`, in float64 and without gradients.

    With α = `alphas` and m the largest α of a row over the block, the sum over the block is

        α_t[y] = emissions[t, y] + m + c[y] + log Σ_r exp(α_{t-1}[r] - m) E[r, y],
        E[r, y] = exp(transitions[r, y] - c[y]),   c[y] = max_r transitions[r, y],

    and the probability of a pair is p(r, y) = p(y) times its share in the sum.

    Args:
        emissions: (N, K) float, the scores of tags at the tokens of a ragged batch of B sentences.
        transitions: (K, K) float, the score of the column's tag after the row's tag. In a column of
            the block, they differ by less than `SPREAD`.
        lengths: (B,) int64, the tokens of each sentence, at least 1 each.
        pairs: the legal pairs of tags.

    Examples:
        >>> import numpy
        >>> pairs = TagPairs(numpy.array([[True, False], [True, True]]))  # no 1 after 0
        >>> sums = ScaledSums(torch.zeros(3, 2), torch.zeros(2, 2), torch.tensor([3]), pairs)
        >>> sums.marginals[:, 1]  # 000, 100, 110, 111
        tensor([0.7500, 0.5000, 0.2500], dtype=torch.float64)
    """

    def __init__(self, emissions: Tensor, transitions: Tensor, lengths: Tensor, pairs: TagPairs):
        device = emissions.device
        self.emissions = emissions.detach().double()
        self.lengths = lengths
        sentence, place = positions(lengths)  # on the CPU: nothing waits for a GPU
        self.sentence = to_device(sentence, device)
        self.later = to_device(place.nonzero()[:, 0], device)
        self.rows, self.columns = (to_device(x, device) for x in pairs.block)
        self.transitions = transitions.detach().double()
        block = self.transitions[self.rows][:, self.columns]
        self.most = block.amax(0)
        self.scaled = (block - self.most).exp()
        self.others, self.before, self.filled = (to_device(x, device) for x in _others(pairs))
        # The tokens at each place but the first.
        steps = to_device(place.argsort(stable=True), device)
        self.steps = steps.split(torch.bincount(place).tolist())[1:]
        self.last = to_device(lengths.cumsum(0) - 1, device)

    @cached_property
    def inflows(self) -> Tensor:
        """(N, K) float64, the log sums over the sequences before each tag; 0 at first tokens."""
        alphas = self.emissions.clone()
        inflows = torch.zeros_like(alphas)
        for step in self.steps:
            alpha = alphas[step - 1]
            inflow = torch.empty_like(alpha)
            a, top = self._scale(alpha)
            inflow[:, self.columns] = (a @ self.scaled).log() + top + self.most
            inflow[:, self.others] = self._few(alpha).logsumexp(2)
            inflows[step] = inflow
            alphas[step] += inflow
        return inflows

    @cached_property
    def alphas(self) -> Tensor:
        """(N, K), the log sum over the sequences that end in a tag at a token."""
        return self.emissions + self.inflows

    @cached_property
    def log_z(self) -> Tensor:
        """(B,), the log partitions."""
        return self.alphas[self.last].logsumexp(1)

    @cached_property
    def marginals(self) -> Tensor:
        """(N, K), the probability of each tag at each token; 0 in sentences without a sequence."""
        marginals = torch.zeros_like(self.alphas)
        ends = (self.alphas[self.last] - self.log_z[:, None]).exp()
        marginals[self.last] = ends.masked_fill((self.log_z == -torch.inf)[:, None], 0.0)
        for step in reversed(self.steps):
            a, u, few = self._shares(step, marginals[step])
            marginals[step - 1] += self._by_previous(a, u, few)[1]
        return marginals

    def _scale(self, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Make exp(α - m) of the rows of the block, and m."""
        over = alpha[:, self.rows]
        top = over.amax(1, keepdim=True).clamp(min=torch.finfo(over.dtype).min)
        return (over - top).exp(), top

    def _few(self, alpha: Tensor) -> Tensor:
        """Sum α and a transition for the tags that are not in the block: (b, others, before)."""
        sums = alpha[:, self.before] + self.transitions[self.before, self.others[:, None]]
        return sums.masked_fill(~self.filled, -torch.inf)

    def _shares(self, step: Tensor, marginals: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Factor the probabilities of pairs at some tokens, whose tags have `marginals`.

        Returns:
            a (b, rows) and u (b, columns), where the probability of a pair of the block is a · E ·
            u; and the probabilities of the other pairs, (b, others, before).
        """
        a, sums, shares = self._factors(step)
        u = torch.where(sums > 0, marginals[:, self.columns] / sums, 0.0)
        few = marginals[:, self.others, None] * shares
        return a, u, torch.where(marginals[:, self.others, None] > 0, few, 0.0)

    def _factors(self, step: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Factor the shares of previous tags in the sums of tags at some tokens.

        Returns:
            a (b, rows) and sums (b, columns), where the share of a pair of the block is a · E /
            sums; and the shares of the other pairs, (b, others, before).
        """
        alpha, inflow = self.alphas[step - 1], self.inflows[step]
        a, top = self._scale(alpha)
        sums = (inflow[:, self.columns] - top - self.most).exp()
        return a, sums, (self._few(alpha) - inflow[:, self.others, None]).exp()

    def _by_previous(self, a: Tensor, u: Tensor, few: Tensor) -> tuple[Tensor, Tensor]:
        """Sum a · E · u by previous tag, and the same with `few`, both (..., K)."""
        block = u.new_zeros(*u.shape[:-1], self.emissions.shape[1])
        block[..., self.rows] = a * (u @ self.scaled.T)
        return block, block.index_add(-1, self.before.flatten(), few.flatten(-2))

    def of_pairs(self, previous: Tensor, tags: Tensor) -> Tensor:
        """The probabilities of some pairs at each token, (N, pairs); 0 at first tokens."""
        likely = self.alphas.new_zeros(len(self.alphas), len(tags))
        step, marginals = self.later, self.marginals[self.later][:, tags]
        logs = self.alphas[step - 1][:, previous] + self.transitions[previous, tags]
        shares = marginals * (logs - self.inflows[step][:, tags]).exp()
        likely[step] = torch.where(marginals > 0, shares, 0.0)
        return likely

    def leaving(self, previous: Tensor, tags: Tensor) -> Tensor:
        """Sum the probabilities of pairs as `marginals_but`, (N, pairs).

        The `tags` are not in the block.
        """
        a, u, few = self._shares(self.later, self.marginals[self.later])
        out = torch.full_like(self.emissions[0], -1, dtype=torch.int64)
        out[previous] = tags
        few = few.masked_fill(out[self.before] == self.others[:, None], 0.0)
        sums = torch.zeros_like(self.alphas)
        sums[self.later] = self._by_previous(a, u, few)[1]
        return sums[:, previous]

    def mean_before(self, step: Tensor, values: Tensor) -> Tensor:
        """Compute the means of values of the tags before some tokens, given the tags of these.

        Args:
            step: (b,) int64, tokens that are not the first of a sentence.
            values: (b, X, K), X values of each tag at the tokens before them.

        Returns:
            (b, X, K), 0 for tags without probability.
        """
        a, sums, shares = self._factors(step)
        means = torch.empty_like(values)
        block = (values[..., self.rows] * a[:, None]) @ self.scaled
        means[..., self.columns] = block / sums[:, None]
        means[..., self.others] = (values[..., self.before] * shares[:, None]).sum(-1)
        return means.masked_fill((self.marginals[step] == 0)[:, None], 0.0)

    def mean_after(self, step: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the means of values of the tags at some tokens, given the tags before these.

        Args:
            step: (b,) int64, tokens that are not the first of a sentence.
            values: (b, X, K), X values of each tag at these tokens.

        Returns:
            The means, (b, X, K), and those given that the pair is in the block; 0 for tags without
            probability.
        """
        a, u, few = self._shares(step, self.marginals[step])
        of_block, of_all = self._by_previous(
            a[:, None],
            u[:, None] * values[..., self.columns],
            few[:, None] * values[..., self.others, None],
        )
        block, all_pairs = self._by_previous(a, u, few)
        return _divided(of_all, all_pairs), _divided(of_block, block)

    def expected(self, emissions: Tensor, transitions: Tensor) -> Tensor:
        """The mean scores of sequences under other scores, (B,) float64, with their gradients."""
        likely = self.marginals > 0
        of_tags = torch.where(likely, self.marginals * emissions.double(), 0.0).sum(1)
        a, u, few = self._shares(self.later, self.marginals[self.later])
        between = transitions.double()
        block = between[self.rows][:, self.columns]
        of_pairs = ((a @ (self.scaled * block)) * u).sum(1)
        others = between[self.before, self.others[:, None]]
        of_pairs = of_pairs + torch.where(few > 0, few * others, 0.0).sum((1, 2))
        scores = of_tags.index_add(0, self.later, of_pairs)
        return scores.new_zeros(len(self.lengths)).index_add(0, self.sentence, scores)


def _others(pairs: TagPairs) -> tuple[Tensor, Tensor, Tensor]:
    """Tabulate the legal pairs that are not in the block.

    Returns:
        The tags that are not in the block, (O,); the tags before them (O, width), 0 beyond their
        number; and whether there is such a tag (O, width) bool.
    """
    others = torch.ones(pairs.tags, dtype=torch.bool).index_fill(0, pairs.block[1], False)
    counts = pairs.begins.diff()[others]
    filled = torch.arange(int(counts.max()) if len(counts) else 0) < counts[:, None]
    before = torch.zeros(filled.shape, dtype=torch.int64)
    before[filled] = pairs.previous[others[pairs.tag]]
    return others.nonzero()[:, 0], before, filled


def _divided(sums: Tensor, shares: Tensor) -> Tensor:
    """Divide sums (b, X, K) by shares (b, K); 0 where the share is 0."""
    return torch.where(shares[:, None] > 0, sums / shares[:, None], 0.0)
