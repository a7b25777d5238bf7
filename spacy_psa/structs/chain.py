"""The linear-chain conditional random field as a distribution over tag sequences.

    p(y | potentials) = exp(Σ_t potentials[t, y_{t-1}, y_t]) / Z          (Lafferty et al. 2001)

With the potentials W_{y',y} z_t + b_{y',y} of label pairs, this is Eq. 1 to 3 of Wei2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from spacy_psa import kernels
from spacy_psa.kernels import gpu_chain
from spacy_psa.ragged import to_device
from spacy_psa.structs import chain_kernels
from spacy_psa.structs.distribution import StructuredDistribution, check_masks, recording
from spacy_psa.structs.semiring import Entropy, KMax, Log, Max, Semiring


class LinearChain(StructuredDistribution[Tensor]):
    """A distribution over the tag sequences of each of B sentences of at most n tokens.

    A value is the tags of a sentence, (length,) int64. In place of a list of values, methods also
    accept a tensor (B, n), which they do not read beyond the length of a sentence. See
    `StructuredDistribution` for what holds for all distributions. Here gradients also flow from
    `pairwise_marginals`. Of equally good sequences, `argmax` is the one with the lowest last tag,
    then with the lowest tag before it, and so on.

    On the CPU, the compiled `kernels.chain` does the work if it can, and on a GPU
    `kernels.gpu_chain`. Otherwise a scan in a semiring does the work. It runs everywhere, also for
    the gradients of `marginals` and `entropy`, and for second derivatives.

    Args:
        potentials: (B, n, K, K) float. `potentials[b, t, y_prev, y]` is the log potential of tag y
            at place t after tag y_prev. At the first place only row 0 is read, so
            `potentials[b, 0, 0, y]` is the score of starting with y. -inf excludes a tag; NaN and
            +inf have no meaning. Places from `lengths[b]` on are never read.
        lengths: (B,) int64, the tokens of each sentence, each from 1 to n.
        allowed: (B, n, K) bool, the tags that are possible at each place; by default all.

    Raises:
        ValueError: for shapes, types or lengths that do not fit.

    Examples:
        >>> chain = LinearChain.from_emissions(torch.zeros(1, 3, 2), torch.tensor([3]))
        >>> chain.log_partition  # log of the number of sequences, 2³
        tensor([2.0794])
        >>> chain.marginals[0]
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000],
                [0.5000, 0.5000]])
    """

    structure = "tag sequence"

    def __init__(self, potentials: Tensor, lengths: Tensor, allowed: Tensor | None = None) -> None:
        if potentials.dim() != 4 or potentials.shape[2] != potentials.shape[3]:
            shape = tuple(potentials.shape)
            raise ValueError(f"potentials must be of shape (B, n, K, K), not {shape}")
        if not potentials.is_floating_point():
            raise ValueError(f"potentials must be floating point, not {potentials.dtype}")
        batch, longest, tags, _ = potentials.shape
        lengths = lengths.to("cpu")
        if lengths.shape != (batch,) or lengths.dtype != torch.int64:
            raise ValueError(f"lengths must be int64 of shape ({batch},)")
        if bool(((lengths < 1) | (lengths > longest)).any()):
            raise ValueError(f"lengths must be from 1 to {longest}, not {lengths.tolist()}")
        if allowed is not None:
            check_masks(allowed=(allowed, (batch, longest, tags)))
            excluded = ~to_device(allowed, potentials.device)[:, :, None, :]
            potentials = potentials.masked_fill(excluded, -torch.inf)
        self.potentials = potentials
        self.lengths = lengths

    @classmethod
    def from_emissions(
        cls,
        emissions: Tensor,
        lengths: Tensor,
        transitions: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
    ) -> LinearChain:
        """Build the chain from scores of tags at places and scores of pairs of tags.

        Args:
            emissions: (B, n, K) float, the score of each tag at each place.
            lengths: (B,) int64, the tokens of each sentence.
            transitions: (K, K), the score of the column's tag after the row's tag; by default 0.
            start: (K,), added at the first place of each sentence; by default 0.
            end: (K,), added at the last place of each sentence; by default 0.

        Examples:
            >>> emissions = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
            >>> change = torch.tensor([[-5.0, 0.0], [0.0, -5.0]])  # tags must change
            >>> LinearChain.from_emissions(emissions, torch.tensor([2]), change).argmax
            [tensor([1, 0])]
        """
        _, longest, tags = emissions.shape
        if end is not None:
            last = torch.arange(longest) == lengths.to("cpu")[:, None] - 1
            # Not a product with 0 and 1, because `end` may be -inf.
            last = to_device(last, emissions.device)
            emissions = emissions + torch.where(last[:, :, None], end, 0.0)
        first = emissions[:, :1] if start is None else emissions[:, :1] + start
        rest = emissions[:, 1:, None, :].expand(-1, -1, tags, -1)
        if transitions is not None:
            rest = rest + transitions
        return cls(torch.cat([first[:, :, None, :].expand(-1, -1, tags, -1), rest], 1), lengths)

    # ------------------------------------------------------------------ probabilities

    @property
    def dtype(self) -> torch.dtype:
        """The type of the potentials."""
        return self.potentials.dtype

    @property
    def device(self) -> torch.device:
        """The device of the potentials."""
        return self.potentials.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of sentences B, the length n of the longest, and the number of tags K."""
        batch, longest, tags, _ = self.potentials.shape
        return batch, longest, tags

    def double(self) -> LinearChain:
        """Convert the chain to double precision."""
        return LinearChain(self.potentials.double(), self.lengths)

    def select(self, rows: Tensor) -> LinearChain:
        """Select sentences by their numbers, (rows,) int64 in ascending order."""
        return LinearChain(self.potentials[rows], self.lengths[rows])

    def split(self) -> list[LinearChain]:
        """Split the chain into one for each sentence; `pair_chain.join` is the inverse."""
        rows = zip(self.potentials, self.lengths.split(1), strict=True)
        return [LinearChain(row[None, : int(length)], length) for row, length in rows]

    def parts(self) -> Iterator[LinearChain]:
        """Yield parts of the chain, in order, whose `potentials` need little memory.

        A chain that has its potentials is one part.
        """
        yield self

    def uniform(self) -> LinearChain:
        """Make a chain in which all possible sequences of a sentence have the same probability.

        It has no gradients.

        Examples:
            >>> chain = LinearChain.from_emissions(torch.randn(1, 3, 2), torch.tensor([3]))
            >>> chain.uniform().log_partition.exp()  # the number of sequences
            tensor([8.])
        """
        excluded = self.potentials == -torch.inf
        even = torch.zeros_like(self.potentials).masked_fill(excluded, -torch.inf)
        return LinearChain(even, self.lengths)

    def tilted(self, scores: Tensor) -> LinearChain:
        """Add scores of tags at places to the potentials.

        The probability of each sequence is multiplied by the exponential of its scores, and
        normalised again.

        Args:
            scores: (B, n, K) float; those beyond the length of a sentence are not read.

        Examples:
            >>> chain = LinearChain.from_emissions(torch.zeros(1, 2, 2), torch.tensor([2]))
            >>> odds = torch.tensor([[[3.0, 1.0], [1.0, 1.0]]])
            >>> chain.tilted(odds.log()).marginals[0]
            tensor([[0.7500, 0.2500],
                    [0.5000, 0.5000]])
        """
        return LinearChain(self.potentials + scores[:, :, None], self.lengths)

    def expected_score(self, other: LinearChain) -> Tensor:
        """Compute the mean score of a sequence if another chain over the same tags draws it.

        The score of a sequence is a sum over its pairs of tags, so the expected counts of the
        pairs under the other chain are enough. The other chain gets no gradient.

        Returns:
            (B,) float64; -inf if this chain excludes a sequence that the other one does not.

        Examples:
            >>> one = LinearChain.from_emissions(torch.tensor([[[2.0, 4.0]]]), torch.tensor([1]))
            >>> one.expected_score(one.uniform())
            tensor([3.], dtype=torch.float64)
        """
        counts = other._expected.detach()
        # Not a plain product, because excluded pairs have the potential -inf and the count 0.
        scores = torch.where(counts > 0, counts.double() * self.potentials, 0.0)
        return scores.sum((1, 2, 3))

    @cached_property
    def marginals(self) -> Tensor:
        """The probability p(y_t = y) of each tag at each place, (B, n, K).

        It is 0 beyond the length of a sentence.
        """
        return self._expected.sum(2)

    @cached_property
    def pairwise_marginals(self) -> Tensor:
        """The probability p(y_{t-1} = y', y_t = y) of each pair of tags, (B, n, K, K).

        It is 0 at t = 0 and beyond the length of a sentence.
        """
        first = torch.zeros_like(self._expected[:, :1])
        return torch.cat([first, self._expected[:, 1:]], 1)

    def marginals_of(self, previous: Tensor, tags: Tensor) -> Tensor:
        """Select the probabilities of some pairs of tags at each place.

        Args:
            previous: (P,) int64, the previous tag of each pair.
            tags: (P,) int64, the tag of each pair.

        Returns:
            (B, n, P), of `pairwise_marginals`; impossible pairs have 0. Those of a `PairChain` have
            no gradients.
        """
        return self.pairwise_marginals[:, :, previous, tags]

    def potentials_of(self, previous: Tensor, tags: Tensor) -> Tensor:
        """Select the potentials of some pairs of tags at each place.

        Args:
            previous: (P,) int64, the previous tag of each pair.
            tags: (P,) int64, the tag of each pair.

        Returns:
            (B, n, P); -inf for impossible pairs. At the first place, these are the scores of
            starting with the tag.
        """
        first, rest = self.potentials[:, :1, 0, tags], self.potentials[:, 1:, previous, tags]
        return torch.cat([first, rest], 1)

    @property
    def possible(self) -> tuple[Tensor, Tensor]:
        """The pairs of tags that may be possible: the previous tags and the tags, (P,) int64."""
        previous, tags = torch.cartesian_prod(*[torch.arange(self.shape[2])] * 2).T
        return previous, tags

    def marginals_but(self, previous: Tensor, tags: Tensor) -> Tensor:
        """Sum the probabilities of the pairs of some tags and any tag but one, at each place.

        No probability is subtracted, so small sums keep their digits.

        Args:
            previous: (P,) int64, the previous tags, each only once.
            tags: (P,) int64, for each of them the tag that is left out.

        Returns:
            (B, n, P), sums of `pairwise_marginals`, without gradients.

        Examples:
            >>> chain = LinearChain.from_emissions(torch.zeros(1, 2, 4), torch.tensor([2]))
            >>> chain.marginals_but(torch.tensor([0]), torch.tensor([3]))[0]
            tensor([[0.0000],
                    [0.1875]])
        """
        pairs = self.pairwise_marginals.detach()[:, :, previous]
        pairs[:, :, torch.arange(len(tags)), tags] = 0.0
        return pairs.sum(3, dtype=torch.float64).to(self.dtype)

    @cached_property
    def entropy(self) -> Tensor:
        """The entropy of the distribution over sequences, (B,) nats."""
        if self._compiled and not self._requires_grad:
            # H = Σ_t H(y_{t-1}, y_t) - H(y_{t-1}) subtracts no large numbers.
            tags = torch.xlogy(self.marginals, self.marginals).sum(2, dtype=torch.float64)
            inner = torch.arange(tags.shape[1]) < self.lengths[:, None] - 1
            entropy = tags.masked_fill(~to_device(inner, self.device), 0.0).sum(1) - self._pair_sum
            return entropy.clamp(min=0.0).to(self.dtype)
        with recording():
            return self._total(Entropy(), self.potentials)[1].to(self.dtype)

    # ---------------------------------------------------------------------- sequences

    @cached_property
    def max(self) -> Tensor:
        """The score of the best sequence, (B,); -inf if no sequence is possible."""
        return self.score(self._best[1])

    # ----------------------------------------------------------------------- evidence

    def constrain(
        self,
        allowed: Tensor | None = None,
        *,
        transitions: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
    ) -> LinearChain:
        """Condition on evidence: sequences that contradict it get the probability 0.

        `constrained.log_partition - self.log_partition` is the log probability of the evidence.

        Args:
            allowed: (B, n, K) bool, the tags that are possible at each place.
            transitions: (K, K) or (B, n, K, K) bool, the tags (columns) that may follow a tag
                (rows). The first place is not read.
            start: (K,) bool, the tags that a sentence may start with.
            end: (K,) bool, the tags that a sentence may end with.

        Raises:
            ValueError: for a mask of another shape or type.

        Examples:
            >>> chain = LinearChain.from_emissions(torch.zeros(1, 3, 2), torch.tensor([3]))
            >>> starts_with_0 = chain.constrain(start=torch.tensor([True, False]))
            >>> (starts_with_0.log_partition - chain.log_partition).exp()
            tensor([0.5000])
        """
        batch, longest, tags = self.shape
        everywhere = transitions is not None and transitions.dim() == 2
        check_masks(
            allowed=(allowed, (batch, longest, tags)),
            transitions=(transitions, (tags, tags) if everywhere else (*self.shape, tags)),
            start=(start, (tags,)),
            end=(end, (tags,)),
        )
        return self._constrained(allowed, transitions, start, end)

    def _constrained(
        self,
        allowed: Tensor | None,
        transitions: Tensor | None,
        start: Tensor | None,
        end: Tensor | None,
    ) -> LinearChain:
        batch = len(self.lengths)
        legal = torch.ones_like(self.potentials, dtype=torch.bool)
        if allowed is not None:
            legal &= to_device(allowed, legal.device)[:, :, None]
        if transitions is not None:
            everywhere = transitions.dim() == 2
            between = transitions if everywhere else transitions[:, 1:]
            legal[:, 1:] &= to_device(between, legal.device)
        if start is not None:
            legal[:, 0] &= to_device(start, legal.device)
        if end is not None:
            rows = torch.arange(batch, device=legal.device)
            last = to_device(self.lengths - 1, legal.device)
            legal[rows, last] &= to_device(end, legal.device)
        return LinearChain(self.potentials.masked_fill(~legal, -torch.inf), self.lengths)

    # ---------------------------------------------------------------------- inference

    @property
    def _compiled(self) -> bool:
        return is_compiled(self.potentials, self.shape[2])

    @property
    def _requires_grad(self) -> bool:
        return self.potentials.requires_grad

    @property
    def _pair_sum(self) -> Tensor:
        """The sum of p log p over all pairs of tags of a sentence, (B,) float64."""
        return torch.xlogy(self._expected, self._expected).sum((1, 2, 3), dtype=torch.float64)

    @cached_property
    def _mask(self) -> Tensor:
        """The places that hold a token, (B, n) bool."""
        with recording():
            places = torch.arange(self.shape[1])
            return to_device(places < self.lengths[:, None], self.device)

    @cached_property
    def _log_z(self) -> Tensor:
        with recording():
            if not self._compiled:
                return self._total(Log(), self.potentials)[0]
            if self.potentials.requires_grad:
                return cast(Tensor, _LogPartition.apply(self.potentials, self.lengths))
        return chain_kernels.log_partition(self.potentials, self.lengths)

    @cached_property
    def _expected(self) -> Tensor:
        """The gradient of log Z, (B, n, K, K); row 0 of t = 0 holds the first marginals."""
        if self.potentials.requires_grad:
            with recording():
                total = self._total(Log(), self.potentials).sum()
                return torch.autograd.grad(total, self.potentials, create_graph=True)[0]
        if self._compiled:
            return chain_kernels.forward_backward(self.potentials, self.lengths)[1]
        with recording():
            potentials = self.potentials.clone().requires_grad_()
            return torch.autograd.grad(self._total(Log(), potentials).sum(), potentials)[0]

    @cached_property
    def _best(self) -> tuple[Tensor, list[Tensor]]:
        if self._compiled:
            best, paths = chain_kernels.viterbi(self.potentials, self.lengths)
            return best, self._cut(paths)
        scores, tags = self._trace(Max())
        return scores[0], self._cut(tags[0])

    def _kbest(self, k: int) -> tuple[Tensor, list[list[Tensor]]]:
        if self._compiled and kernels.available():  # on the CPU, for a GPU too
            from spacy_psa.kernels import chain as kernel

            potentials = self.potentials.detach().cpu().contiguous().numpy()
            best = kernel.kbest(potentials, self.lengths.numpy(), k)
            scores, tags = (to_device(torch.from_numpy(each), self.device) for each in best)
        else:
            scores, tags = self._trace(KMax(k))
        return scores, [self._cut(rows) for rows in tags]

    def _sample(self, n: int, generator: torch.Generator | None) -> list[list[Tensor]]:
        semiring = Log()
        steps = self._steps(self.potentials)
        alphas = self._scan(semiring, steps)
        sentence = torch.arange(len(self.lengths), device=self.potentials.device)
        drawn: list[Tensor] = []
        for t in reversed(range(len(steps))):
            logits = alphas[t].expand(n, -1, -1)
            if drawn:  # p(y_t | y_{t+1}): forward filtering, backward sampling
                logits = logits + steps[t + 1].double().transpose(1, 2)[sentence, drawn[-1]]
            # The maximum of logits with Gumbel noise is never at -inf.
            noise = torch.empty_like(logits, memory_format=torch.contiguous_format)
            drawn.append((logits - noise.exponential_(generator=generator).log()).argmax(-1))
        tags = torch.stack(drawn[::-1], -1)
        return [list(own) for own in zip(*(self._cut(rows) for rows in tags), strict=True)]

    def _cut(self, tags: Tensor) -> list[Tensor]:
        """Cut the rows of (B, n) tags to the lengths of their sentences."""
        return [row[:n] for row, n in zip(tags, self.lengths.tolist(), strict=True)]

    def _trace(self, semiring: Semiring) -> tuple[Tensor, Tensor]:
        """Return scores (m, B) float64 and tags (m, B, n) of the sequences a semiring keeps."""
        with recording():
            potentials = self.potentials.detach().clone().requires_grad_()
            scores = self._total(semiring, potentials)
            tags = []
            for score in scores:  # its gradient is 1 at the steps of the sequence, else 0
                (steps,) = torch.autograd.grad(score.sum(), potentials, retain_graph=True)
                tags.append(steps.sum(2).argmax(2))
        scores = scores.detach()
        impossible = scores == -torch.inf
        return scores, torch.stack(tags).masked_fill(impossible[:, :, None], 0)

    def _total(self, semiring: Semiring, potentials: Tensor) -> Tensor:
        """Sum over all sequences: a semiring value (m, B) in float64."""
        return semiring.sum(self._scan(semiring, self._steps(potentials))[-1], -1)

    def _steps(self, potentials: Tensor) -> list[Tensor]:
        """List n tensors (B, K, K): the log potentials, or the unit matrix beyond the length."""
        unit = potentials.new_full(potentials.shape[2:], -torch.inf)
        unit.fill_diagonal_(0.0)
        # Not n slices: their gradients would be n tensors of the size of the potentials.
        return list(torch.where(self._mask[:, :, None, None], potentials, unit).unbind(1))

    @staticmethod
    def _scan(semiring: Semiring, steps: list[Tensor]) -> list[Tensor]:
        """Sum over all sequences that end in a tag at a place: n semiring values (m, B, K)."""
        values = [semiring.lift(steps[0][:, 0].double())]
        for step in steps[1:]:
            scores = semiring.lift(step.double())
            values.append(semiring.sum(semiring.times(values[-1][..., None], scores), -2))
        return values

    def _score(self, values: Sequence[Tensor] | Tensor) -> Tensor:
        count = self.shape[2]
        tags = self._checked(values)
        previous = torch.nn.functional.pad(tags[:, :-1], (1, 0))
        pairs = self.potentials.flatten(2).gather(2, (previous * count + tags)[:, :, None])
        return pairs[:, :, 0].masked_fill(~self._mask, 0.0).double().sum(1)

    def _checked(self, values: Sequence[Tensor] | Tensor) -> Tensor:
        """Return values as (B, n) tags, 0 beyond the length of a sentence."""
        tags = to_device(self._padded(values), self.device).masked_fill(~self._mask, 0)
        if bool(((tags < 0) | (tags >= self.shape[2])).any()):
            raise ValueError(f"tags must be from 0 to {self.shape[2] - 1}")
        return tags

    def _padded(self, values: Sequence[Tensor] | Tensor) -> Tensor:
        """Return values, or a tensor of tags, as (B, n) tags."""
        batch, longest, _ = self.shape
        if not isinstance(values, Tensor):
            sizes = [len(tags) for tags in values]
            if sizes != self.lengths.tolist():
                raise ValueError(
                    f"the tags are for {sizes} tokens, but the sentences have "
                    f"{self.lengths.tolist()}"
                )
            rows = [torch.as_tensor(tags) for tags in values]
            tags = pad_sequence(rows, batch_first=True) if rows else self.lengths.view(0, 0)
            values = torch.nn.functional.pad(tags, (0, longest - tags.shape[1]))
        if values.shape != (batch, longest):
            shape = tuple(values.shape)
            raise ValueError(f"tags must be of shape ({batch}, {longest}), not {shape}")
        return values


def is_compiled(potentials: Tensor, tags: int) -> bool:
    """Whether there are compiled kernels for the potentials of a chain, in whatever form."""
    if potentials.dtype not in (torch.float32, torch.float64):
        return False
    if potentials.device.type == "cuda":
        return tags <= gpu_chain.MOST_TAGS and kernels.available_on_gpu()
    return potentials.device.type == "cpu" and kernels.available()


class _LogPartition(torch.autograd.Function):
    """Computes log Z (B,) by the kernel; the gradient is the expected counts of the steps."""

    @staticmethod
    def forward(ctx: Any, potentials: Tensor, lengths: Tensor) -> Tensor:
        log_z, expected = chain_kernels.forward_backward(potentials, lengths)
        ctx.save_for_backward(potentials, lengths, expected)
        return log_z

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        potentials, lengths, expected = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph: it will be differentiated again
            expected = LinearChain(potentials, lengths)._expected
        return gradient.to(expected.dtype)[:, None, None, None] * expected, None
