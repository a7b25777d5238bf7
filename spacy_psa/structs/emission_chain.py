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
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa import kernels
from spacy_psa.ragged import pad, positions, to_device
from spacy_psa.structs.chain import LinearChain, is_compiled
from spacy_psa.structs.distribution import recording
from spacy_psa.structs.pair_chain import PairChain, TagPairs, has_pairs
from spacy_psa.structs.scaled_sums import SPREAD, ScaledSums

FLOATS = torch.float32, torch.float64
NUMBERS = 32_000_000
"""The most numbers of a part of a chain; see `EmissionChain.parts`."""


class EmissionChain(PairChain):
    """A `PairChain` whose scores of pairs of tags are the same at all places.

    Its answers are those of the chain with emissions[token, tag] + transitions[previous, tag] for
    each legal pair. It needs (2n + 1)² multiplications a token for n labels in BIOES, and memory
    for K numbers. `pairwise_marginals`, gradients of marginals and entropy and second derivatives
    make all potentials first, and so does `kbest` without compiled kernels: ask them of `parts`.

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
            at = pairs.previous * pairs.tags + pairs.tag
            at, tag, begins = (to_device(x, device) for x in (at, pairs.tag, pairs.begins[:-1]))
            # Not by index_put: on a GPU, its gradient sorts.
            between = self.transitions.flatten().index_select(0, at)
            flat = self.emissions.index_select(1, tag) + between
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
        return self._with(self.emissions[to_device(kept, self.device)], lengths=self.lengths[rows])

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
            legal &= to_device(allowed, self.device)[positions(self.lengths, self.device)]
        for rows, possible in ((self._first, start), (self._last, end)):
            if possible is not None:
                legal[rows] &= to_device(possible, self.device)
        between = self.transitions
        if transitions is not None:
            between = between.masked_fill(~to_device(transitions, self.device), -torch.inf)
        return self._with(self.emissions.masked_fill(~legal, -torch.inf), between)

    def expected_score(self, other: LinearChain) -> Tensor:
        scaled = isinstance(other, EmissionChain) and has_pairs(other, self.pairs)
        if not (scaled and self._sums_apply and cast(EmissionChain, other)._sums_apply):
            return super().expected_score(other)
        return cast(EmissionChain, other).sums.expected(self.emissions, self.transitions)

    @cached_property
    def marginals(self) -> Tensor:
        if not self._sums_apply or self._requires_grad:
            return super().marginals
        return pad(self.sums.marginals.to(self.dtype), self.lengths)

    def marginals_of(self, previous: Tensor, tags: Tensor) -> Tensor:
        if not self._sums_apply:
            return super().marginals_of(previous, tags)
        legal = self.pairs.places[previous, tags] < len(self.pairs)
        likely = self.sums.of_pairs(to_device(previous, self.device), to_device(tags, self.device))
        likely = likely.masked_fill(~to_device(legal, self.device), 0.0)
        return pad(likely.to(self.dtype), self.lengths)

    def marginals_but(self, previous: Tensor, tags: Tensor) -> Tensor:
        if not self._sums_apply or torch.isin(tags, self.pairs.block[1]).any():
            return super().marginals_but(previous, tags)
        sums = self.sums.leaving(to_device(previous, self.device), to_device(tags, self.device))
        return pad(sums.to(self.dtype), self.lengths)

    @cached_property
    def entropy(self) -> Tensor:
        """The entropy of the distribution over sequences, (B,) nats: log Z - E[score]."""
        if not self._sums_apply or self._requires_grad:
            return super().entropy
        expected = self.sums.expected(self.emissions, self.transitions)
        return (self.sums.log_z - expected).clamp(min=0.0).to(self.dtype)

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
    def is_scaled(self) -> bool:
        """Whether scaled sums are exact: no transition to a tag is much below the others."""
        rows, columns = (to_device(x, self.device) for x in self.pairs.block)
        block = self.transitions.detach()[rows][:, columns]
        return bool((block.amax(0) - block.amin(0)).max() < SPREAD)

    @cached_property
    def _sums_apply(self) -> bool:
        """Whether to use scaled sums. They need a dozen launches for each token of a sentence.

        On a GPU, the kernel for pairs of tags needs one, if these are not too many.
        """
        few = len(self.emissions) * len(self.pairs) <= NUMBERS
        return not (few and self._compiled and self.device.type == "cuda") and self.is_scaled

    @cached_property
    def sums(self) -> ScaledSums:
        """Forward-backward without gradients; exact if the chain `is_scaled`."""
        return ScaledSums(self.emissions, self.transitions, self.lengths, self.pairs)

    @cached_property
    def _log_z(self) -> Tensor:
        if not self._sums_apply:
            return super()._log_z
        if not self._requires_grad:
            return self.sums.log_z
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

        scores, tags = map(torch.from_numpy, viterbi(*self._arrays()))
        return scores, list(tags.split(self.lengths.tolist()))

    def _kbest(self, k: int) -> tuple[Tensor, list[list[Tensor]]]:
        if not (self.dtype in FLOATS and kernels.available()):
            return super()._kbest(k)
        from spacy_psa.kernels.emission_chain import kbest

        scores, tags = map(torch.from_numpy, kbest(*self._arrays(), k))
        lengths = self.lengths.tolist()
        ranked = [list(to_device(each, self.device).split(lengths)) for each in tags]
        return to_device(scores, self.device), ranked

    def _sample(self, n: int, generator: torch.Generator | None) -> list[list[Tensor]]:
        if not self.is_scaled:
            return super()._sample(n, generator)
        illegal = to_device(self.pairs.places == len(self.pairs), self.device)
        after = self.transitions.detach().double().masked_fill(illegal, -torch.inf).T
        lengths = to_device(self.lengths, self.device)
        drawn: list[Tensor] = []
        for t in reversed(range(self.shape[1])):
            goes_on = t + 1 < lengths
            at = torch.where(goes_on, self._first + t, self._last)
            logits = self.sums.alphas[at].expand(n, -1, -1)
            if drawn:  # p(y_t | y_{t+1}): forward filtering, backward sampling
                logits = logits + torch.where(goes_on[:, None], after[drawn[-1]], 0.0)
            noise = torch.empty_like(logits, memory_format=torch.contiguous_format)
            tags = (logits - noise.exponential_(generator=generator).log()).argmax(-1)
            drawn.append(torch.where(goes_on, tags, drawn[-1]) if drawn else tags)
        rows = torch.stack(drawn[::-1], -1)
        return [list(own) for own in zip(*map(self._cut, rows), strict=True)]

    def _arrays(self) -> Iterator[NDArray[Any]]:
        """List what the compiled kernels read."""
        pairs = self.pairs
        floats = (x.detach().cpu().contiguous() for x in (self.emissions, self.transitions))
        rest = self.lengths, pairs.previous, pairs.begins, *pairs.block
        return map(Tensor.numpy, (*floats, *rest))

    def _score(self, values: Sequence[Tensor] | Tensor) -> Tensor:
        sentence, place = positions(self.lengths, self.device)
        tags = self._checked(values)[sentence, place]
        before = tags.roll(1)
        scores = self.emissions.gather(1, tags[:, None])[:, 0].double()
        between = self.transitions[before, tags].double()
        legal = to_device(self.pairs.places, self.device)[before, tags] < len(self.pairs)
        between = torch.where(legal, between, -torch.inf)
        scores = scores + torch.where(place > 0, between, 0.0)
        return scores.new_zeros(len(self.lengths)).index_add(0, sentence, scores)


class _LogPartition(torch.autograd.Function):
    """Computes log Z (B,); the gradient is the expected counts of tags and of pairs of tags."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, lengths: Tensor, pairs: TagPairs
    ) -> Tensor:
        ctx.sums, ctx.pairs = ScaledSums(emissions, transitions, lengths, pairs), pairs
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
