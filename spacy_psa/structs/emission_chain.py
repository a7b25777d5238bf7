"""A linear chain that keeps the scores of tags and those of pairs of tags apart.

With K tags, a token has K numbers in place of one for each legal pair. Sums over sequences use the
structure of the pairs: in BIO and BIOES, nearly all legal pairs are a block in which any of some
tags may follow any of others (`TagPairs.block`), and the other tags have few tags before them. The
sums over the block are products of a matrix, scaled as in Rabiner (1989) section V.A.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from spacy_psa.ragged import pad, positions
from spacy_psa.structs.chain import LinearChain, is_compiled
from spacy_psa.structs.distribution import recording
from spacy_psa.structs.pair_chain import PairChain, TagPairs, has_pairs

SPREAD = 500.0
"""The most that transitions to a tag may differ by in a scaled sum, so that it never underflows."""
NUMBERS = 32_000_000
"""The most numbers of a part of a chain; see `EmissionChain.parts`."""


class EmissionChain(PairChain):
    """A `PairChain` whose scores of pairs of tags are the same at all places.

    Its answers are those of the chain with emissions[token, tag] + transitions[previous, tag] for
    each legal pair. It needs (2n + 1)² multiplications a token for n labels in BIOES, and memory
    for K numbers. `kbest`, `sample`, `pairwise_marginals`, gradients of marginals and entropy and
    second derivatives make all potentials first: ask them of `parts`.

    Args:
        emissions: (N, K) float, the scores of tags at the tokens of a ragged batch of B sentences.
        transitions: (K, K) float, the score of the column's tag after the row's tag. Those of pairs
            that are not legal are not read.
        lengths: (B,) int64, the tokens of each sentence, at least 1 each.
        pairs: the legal pairs.

    Raises:
        ValueError: for shapes that do not fit.

    Examples:
        >>> import numpy
        >>> pairs = TagPairs(numpy.array([[True, False], [True, True]]))  # no 1 after 0
        >>> chain = EmissionChain(torch.zeros(3, 2), torch.zeros(2, 2), torch.tensor([3]), pairs)
        >>> chain.log_partition.exp()  # 000, 100, 110, 111
        tensor([4.])
    """

    def __init__(
        self, emissions: Tensor, transitions: Tensor, lengths: Tensor, pairs: TagPairs
    ) -> None:
        tags = pairs.tags
        shapes = tuple(emissions.shape), tuple(transitions.shape)
        if shapes != ((int(lengths.sum()), tags), (tags, tags)):
            raise ValueError(f"{shapes} are not the shapes of emissions and transitions")
        self.emissions = emissions
        self.transitions = transitions
        self.lengths = lengths
        self.pairs = pairs

    @cached_property
    def flat(self) -> Tensor:  # type: ignore[override]
        """(N, P), the potentials of all legal pairs; see `PairChain`."""
        with recording():
            pairs, device = self.pairs, self.device
            previous, tag, begins = (
                x.to(device) for x in (pairs.previous, pairs.tag, pairs.begins[:-1])
            )
            flat = self.emissions[:, tag] + self.transitions[previous, tag]
            starts = self._first[:, None], begins
            return flat.index_put(starts, self.emissions[self._first])

    @property
    def dtype(self) -> torch.dtype:
        return self.emissions.dtype

    @cached_property
    def device(self) -> torch.device:
        return self.emissions.device

    def split(self) -> list[LinearChain]:
        rows = self.emissions.split(self.lengths.tolist())
        parts = zip(rows, self.lengths.split(1), strict=True)
        return [self._with(emissions, lengths=length) for emissions, length in parts]

    def parts(self) -> Iterator[EmissionChain]:
        """Divide the chain into parts of a sentence, or of at most 32 million potentials."""
        batch, longest, tags = self.shape
        for rows in torch.arange(batch).split(max(1, NUMBERS // (longest * tags**2))):
            yield self.select(rows)

    def double(self) -> EmissionChain:
        return self._with(self.emissions.double(), self.transitions.double())

    def select(self, rows: Tensor) -> EmissionChain:
        kept = torch.isin(positions(self.lengths)[0], rows)
        return self._with(self.emissions[kept.to(self.device)], lengths=self.lengths[rows])

    def uniform(self) -> EmissionChain:
        even = (
            torch.zeros_like(x).masked_fill(x == -torch.inf, -torch.inf)
            for x in (self.emissions, self.transitions)
        )
        return self._with(*even)

    def tilted(self, scores: Tensor) -> EmissionChain:
        return self._with(self.emissions + scores[positions(self.lengths, self.device)])

    def _constrained(
        self,
        allowed: Tensor | None,
        transitions: Tensor | None,
        start: Tensor | None,
        end: Tensor | None,
    ) -> LinearChain:
        if transitions is not None and transitions.dim() != 2:
            return super()._constrained(allowed, transitions, start, end)
        legal = torch.ones_like(self.emissions, dtype=torch.bool)
        if allowed is not None:
            legal &= allowed.to(self.device)[positions(self.lengths, self.device)]
        for rows, possible in ((self._first, start), (self._last, end)):
            if possible is not None:
                legal[rows] &= possible.to(self.device)
        between = self.transitions
        if transitions is not None:
            between = between.masked_fill(~transitions.to(self.device), -torch.inf)
        return self._with(self.emissions.masked_fill(~legal, -torch.inf), between)

    def expected_score(self, other: LinearChain) -> Tensor:
        scaled = isinstance(other, EmissionChain) and has_pairs(other, self.pairs)
        if not (scaled and self._is_scaled and cast(EmissionChain, other)._is_scaled):
            return super().expected_score(other)
        return cast(EmissionChain, other)._sums.expected(self.emissions, self.transitions)

    @cached_property
    def marginals(self) -> Tensor:
        if not self._is_scaled or self._requires_grad:
            return super().marginals
        return pad(self._sums.marginals.to(self.dtype), self.lengths)

    def marginals_of(self, previous: Tensor, tags: Tensor) -> Tensor:
        if not self._is_scaled:
            return super().marginals_of(previous, tags)
        legal = self.pairs.places[previous, tags] < len(self.pairs)
        likely = self._sums.of_pairs(previous.to(self.device), tags.to(self.device))
        return pad(likely.masked_fill(~legal.to(self.device), 0.0).to(self.dtype), self.lengths)

    @cached_property
    def entropy(self) -> Tensor:
        """The entropy of the distribution over sequences, (B,) nats: log Z - E[score]."""
        if not self._is_scaled or self._requires_grad:
            return super().entropy
        expected = self._sums.expected(self.emissions, self.transitions)
        return (self._sums.log_z - expected).clamp(min=0.0).to(self.dtype)

    def joined(self, chains: Sequence[PairChain]) -> PairChain:
        if not all(isinstance(c, EmissionChain) and self._shares(c) for c in chains):
            return super().joined(chains)
        emissions = torch.cat([cast(EmissionChain, chain).emissions for chain in chains])
        return self._with(emissions, lengths=torch.cat([chain.lengths for chain in chains]))

    def _shares(self, other: EmissionChain) -> bool:
        same = other.transitions is self.transitions
        return has_pairs(other, self.pairs) and (
            same or torch.equal(other.transitions, self.transitions)
        )

    def _with(
        self, emissions: Tensor, transitions: Tensor | None = None, lengths: Tensor | None = None
    ) -> EmissionChain:
        return EmissionChain(
            emissions,
            self.transitions if transitions is None else transitions,
            self.lengths if lengths is None else lengths,
            self.pairs,
        )

    # ---------------------------------------------------------------------- inference

    @property
    def _compiled(self) -> bool:
        return is_compiled(self.emissions, self.pairs.tags)

    @property
    def _requires_grad(self) -> bool:
        return self.emissions.requires_grad or self.transitions.requires_grad

    @cached_property
    def _is_scaled(self) -> bool:
        """Whether scaled sums are exact: no transition to a tag is much below the others."""
        rows, columns = (x.to(self.device) for x in self.pairs.block)
        block = self.transitions.detach()[rows][:, columns]
        return bool((block.amax(0) - block.amin(0)).max() < SPREAD)

    @cached_property
    def _sums(self) -> _ScaledSums:
        return _ScaledSums(self.emissions, self.transitions, self.lengths, self.pairs)

    @cached_property
    def _log_z(self) -> Tensor:
        if not self._is_scaled:
            return super()._log_z
        if not self._requires_grad:
            return self._sums.log_z
        given = self.emissions, self.transitions, self.lengths, self.pairs
        with recording():
            return cast(Tensor, _LogPartition.apply(*given))

    @cached_property
    def _best(self) -> tuple[Tensor, list[Tensor]]:
        if not self._compiled or self.device.type != "cpu":
            parts = [PairChain(p.flat, p.lengths, p.pairs)._best for p in self.parts()]
            return torch.cat([scores for scores, _ in parts]), [
                y for _, tags in parts for y in tags
            ]
        from spacy_psa.kernels.emission_chain import viterbi

        pairs = self.pairs
        floats = self.emissions.detach().contiguous(), self.transitions.detach().contiguous()
        arrays = map(
            Tensor.numpy, (*floats, self.lengths, pairs.previous, pairs.begins, *pairs.block)
        )
        scores, tags = map(torch.from_numpy, viterbi(*arrays))
        return scores, list(tags.split(self.lengths.tolist()))

    def _score(self, values: Sequence[Tensor] | Tensor) -> Tensor:
        sentence, place = positions(self.lengths, self.device)
        tags = self._checked(values)[sentence, place]
        before = tags.roll(1)
        scores = self.emissions.gather(1, tags[:, None])[:, 0].double()
        between = self.transitions[before, tags].double()
        legal = self.pairs.places.to(self.device)[before, tags] < len(self.pairs)
        between = torch.where(legal, between, -torch.inf)
        scores = scores + torch.where(place > 0, between, 0.0)
        return scores.new_zeros(len(self.lengths)).index_add(0, sentence, scores)


class _ScaledSums:
    """Forward-backward of an `EmissionChain`, in float64 and without gradients.

    With α = `alphas` and m the largest α of a row over the block, the sum over the block is

        α_t[y] = emissions[t, y] + m + c[y] + log Σ_r exp(α_{t-1}[r] - m) E[r, y],
        E[r, y] = exp(transitions[r, y] - c[y]),   c[y] = max_r transitions[r, y],

    and the probability of a pair is p(r, y) = p(y) times its share in the sum.
    """

    def __init__(self, emissions: Tensor, transitions: Tensor, lengths: Tensor, pairs: TagPairs):
        device = emissions.device
        self.emissions = emissions.detach().double()
        self.lengths = lengths
        self.sentence, place = positions(lengths, device)
        self.later = place.nonzero()[:, 0]
        self.rows, self.columns = (x.to(device) for x in pairs.block)
        self.transitions = transitions.detach().double()
        block = self.transitions[self.rows][:, self.columns]
        self.most = block.amax(0)
        self.scaled = (block - self.most).exp()
        self.others, self.before, self.filled = (x.to(device) for x in _others(pairs))
        # The tokens at each place but the first.
        self.steps = place.argsort(stable=True).split(torch.bincount(place).tolist())[1:]
        self.last = (lengths.cumsum(0) - 1).to(device)

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
            inner = torch.zeros_like(self.alphas[step - 1])
            inner[:, self.rows] = a * (u @ self.scaled.T)
            inner.index_add_(1, self.before.flatten(), few.flatten(1))
            marginals[step - 1] += inner
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
        alpha, inflow = self.alphas[step - 1], self.inflows[step]
        a, top = self._scale(alpha)
        sums = (inflow[:, self.columns] - top - self.most).exp()
        u = torch.where(sums > 0, marginals[:, self.columns] / sums, 0.0)
        shares = (self._few(alpha) - inflow[:, self.others, None]).exp()
        few = marginals[:, self.others, None] * shares
        return a, u, torch.where(marginals[:, self.others, None] > 0, few, 0.0)

    def of_pairs(self, previous: Tensor, tags: Tensor) -> Tensor:
        """The probabilities of some pairs at each token, (N, pairs); 0 at first tokens."""
        likely = self.alphas.new_zeros(len(self.alphas), len(tags))
        step, marginals = self.later, self.marginals[self.later][:, tags]
        logs = self.alphas[step - 1][:, previous] + self.transitions[previous, tags]
        shares = marginals * (logs - self.inflows[step][:, tags]).exp()
        likely[step] = torch.where(marginals > 0, shares, 0.0)
        return likely

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


class _LogPartition(torch.autograd.Function):
    """Computes log Z (B,); the gradient is the expected counts of tags and of pairs of tags."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, lengths: Tensor, pairs: TagPairs
    ) -> Tensor:
        ctx.sums, ctx.pairs = _ScaledSums(emissions, transitions, lengths, pairs), pairs
        ctx.save_for_backward(emissions, transitions)
        return ctx.sums.log_z

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        emissions, transitions = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph: it will be differentiated again
            chain = EmissionChain(emissions, transitions, ctx.sums.lengths, ctx.pairs)
            whole = PairChain(chain.flat, chain.lengths, chain.pairs)._log_z
            given = (whole * gradient).sum()
            return (
                *torch.autograd.grad(given, (emissions, transitions), create_graph=True),
                None,
                None,
            )
        sums = ctx.sums
        with torch.enable_grad():
            leaves = emissions.detach().requires_grad_(), transitions.detach().requires_grad_()
            score = sums.expected(*leaves)
        return *torch.autograd.grad(score, leaves, gradient), None, None
