"""The linear-chain conditional random field as a distribution over tag sequences.

p(y | potentials) = exp(Σ_t potentials[t, y_{t-1}, y_t]) / Z, Lafferty et al. 2001; with
the label-pair potentials W_{y',y} z_t + b_{y',y} it is Eq. 1 to 3 of the PSA papers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from spacy_psa import kernels
from spacy_psa.structs.semiring import Entropy, KMax, Log, Max, Semiring


class LinearChain:
    """A distribution over the tag sequences of each of B sentences of at most n tokens.

    potentials: (B, n, K, K) float. `potentials[b, t, y_prev, y]` is the log potential of
        tag y at place t after tag y_prev; at the first place only row 0 is read, so
        `potentials[b, 0, 0, y]` is the score of starting with y. -inf excludes; NaN and
        +inf have no meaning. Places from `lengths[b]` on are never read.
    lengths: (B,) int64, each from 1 to n.
    allowed: (B, n, K) bool, the tags that may stand at each place; all, if None.

    Computes in float64 and answers in the type of `potentials`. Everything is exact. A
    sentence in which no sequence is possible has a log partition of -inf, marginals and
    entropy 0, no best sequence (an error) and no influence on the gradients of others.
    Gradients flow to `potentials` from `log_partition`, `log_prob`, `score`, `max`,
    `marginals`, `pairwise_marginals` and `entropy`.

    On the CPU the compiled `kernels.chain` does the work where it can, else the scan in
    a semiring, which also runs on GPUs and gives the gradients of `marginals` and
    `entropy`, and second derivatives.

    Raises ValueError for shapes, types or lengths that do not fit.

    >>> chain = LinearChain.from_emissions(torch.zeros(1, 3, 2), torch.tensor([3]))
    >>> chain.log_partition  # log of the number of sequences, 2³
    tensor([2.0794])
    """

    def __init__(self, potentials: Tensor, lengths: Tensor, allowed: Tensor | None = None) -> None:
        if potentials.dim() != 4 or potentials.shape[2] != potentials.shape[3]:
            raise ValueError(f"potentials must be (B, n, K, K), not {tuple(potentials.shape)}")
        if not potentials.is_floating_point():
            raise ValueError(f"potentials must be floating point, not {potentials.dtype}")
        batch, longest, tags, _ = potentials.shape
        lengths = lengths.to("cpu")
        if lengths.shape != (batch,) or lengths.dtype != torch.int64:
            raise ValueError(f"lengths must be int64 of shape ({batch},)")
        if bool(((lengths < 1) | (lengths > longest)).any()):
            raise ValueError(f"lengths must be from 1 to {longest}: {lengths.tolist()}")
        if allowed is not None:
            _check("allowed", allowed, (batch, longest, tags))
            excluded = ~allowed.to(potentials.device)[:, :, None, :]
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
        """The chain with a score for each tag at each place and for each pair of tags.

        emissions: (B, n, K); lengths: (B,) int64; transitions: (K, K), from the row's tag
        to the column's; start, end: (K,), added at each sentence's first and last place.
        What is None is 0.
        """
        _, longest, tags = emissions.shape
        if end is not None:
            last = torch.arange(longest) == lengths.to("cpu")[:, None] - 1
            # Not a product with 0 and 1: `end` may be -inf.
            emissions = emissions + torch.where(last.to(emissions.device)[:, :, None], end, 0.0)
        first = emissions[:, :1] if start is None else emissions[:, :1] + start
        rest = emissions[:, 1:, None, :].expand(-1, -1, tags, -1)
        if transitions is not None:
            rest = rest + transitions
        return cls(torch.cat([first[:, :, None, :].expand(-1, -1, tags, -1), rest], 1), lengths)

    # ------------------------------------------------------------------ probabilities

    @cached_property
    def log_partition(self) -> Tensor:
        """log Z, (B,) nats; -inf where no sequence is possible."""
        return self._log_z.to(self.potentials.dtype)

    def score(self, tags: Tensor) -> Tensor:
        """The sum of the log potentials, (B,), of tags (B, n) int64.

        Tags beyond a sentence's length are ignored. Raises ValueError for a tag that is
        not from 0 to K - 1.
        """
        return self._score(tags).to(self.potentials.dtype)

    def log_prob(self, tags: Tensor) -> Tensor:
        """log p(tags), (B,) nats, of tags (B, n) int64, as `score` takes them.

        -inf, with gradient 0, for a sequence that is excluded.
        """
        score = self._score(tags)
        log_prob = (score - self._log_z).masked_fill(score == -torch.inf, -torch.inf)
        return log_prob.to(self.potentials.dtype)

    @cached_property
    def marginals(self) -> Tensor:
        """p(y_t = y), (B, n, K); 0 beyond a sentence's length."""
        return self._expected.sum(2)

    @cached_property
    def pairwise_marginals(self) -> Tensor:
        """p(y_{t-1} = y', y_t = y), (B, n, K, K); 0 at t = 0 and beyond the length."""
        first = torch.zeros_like(self._expected[:, :1])
        return torch.cat([first, self._expected[:, 1:]], 1)

    @cached_property
    def entropy(self) -> Tensor:
        """The entropy of the distribution over sequences, (B,) nats."""
        if self._compiled and not self.potentials.requires_grad:
            # H = Σ_t H(y_{t-1}, y_t) - H(y_{t-1}): no large numbers are subtracted.
            pairs = torch.xlogy(self._expected, self._expected).sum((1, 2, 3), dtype=torch.float64)
            tags = torch.xlogy(self.marginals, self.marginals).sum(2, dtype=torch.float64)
            inner = torch.arange(tags.shape[1]) < self.lengths[:, None] - 1
            entropy = (tags.masked_fill(~inner, 0.0).sum(1) - pairs).clamp(min=0.0)
        else:
            with _recording():
                entropy = self._total(Entropy(), self.potentials)[1]
        return entropy.to(self.potentials.dtype)

    # ---------------------------------------------------------------------- sequences

    @cached_property
    def argmax(self) -> Tensor:
        """The best tag sequence (Viterbi), (B, n) int64, 0 beyond a sentence's length.

        Of equally good sequences it is the one with the lowest last tag, then the lowest
        last but one, and so on. Raises ValueError, naming the sentences, where no
        sequence is possible.
        """
        scores, tags = self._best
        self._check_possible(scores)
        return tags

    @cached_property
    def max(self) -> Tensor:
        """The score of the best sequence, (B,); -inf where no sequence is possible."""
        return self.score(self._best[1])

    def kbest(self, k: int) -> tuple[Tensor, Tensor]:
        """The k best distinct sequences, best first: tags (B, k, n), log p (B, k).

        The log probabilities are under the whole distribution and carry no gradient
        (`log_prob` of the tags does). Where fewer than k sequences are possible the rest
        has a log probability of -inf and the tags 0. Raises ValueError for k < 1.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        scores, tags = self._kbest(k)
        impossible = scores == -torch.inf
        log_probs = (scores - self._log_z.detach()).masked_fill(impossible, -torch.inf)
        return tags.transpose(0, 1), log_probs.t().to(self.potentials.dtype)

    @torch.no_grad()
    def sample(self, num: int, generator: torch.Generator | None = None) -> Tensor:
        """`num` independent sequences for each sentence, (num, B, n) int64.

        0 beyond a sentence's length. `generator` must be on the device of the potentials.
        Raises ValueError, naming the sentences, where no sequence is possible.
        """
        self._check_possible(self._log_z)
        semiring = Log()
        steps = self._steps(self.potentials)
        alphas = self._scan(semiring, steps)
        batch = len(self.lengths)
        sentence = torch.arange(batch, device=self.potentials.device)
        drawn: list[Tensor] = []
        for t in reversed(range(len(steps))):
            logits = alphas[t].expand(num, -1, -1)
            if drawn:  # p(y_t | y_{t+1}), Forward filtering, backward sampling
                logits = logits + steps[t + 1].double().transpose(1, 2)[sentence, drawn[-1]]
            # The maximum of logits with Gumbel noise never falls on -inf.
            noise = torch.empty_like(logits, memory_format=torch.contiguous_format)
            drawn.append((logits - noise.exponential_(generator=generator).log()).argmax(-1))
        return torch.stack(drawn[::-1], -1).masked_fill(~self._mask, 0)

    # ----------------------------------------------------------------------- evidence

    def constrain(
        self,
        allowed: Tensor | None = None,
        *,
        moves: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
    ) -> LinearChain:
        """The distribution under evidence: what is not true here has probability 0.

        allowed: (B, n, K) bool, the tags that may stand at each place.
        moves: (K, K) or (B, n, K, K) bool, the tags (columns) that may follow a tag (rows);
            at the first place they do not matter.
        start, end: (K,) bool, the tags a sentence may start and end with.

        `constrained.log_partition - self.log_partition` is the log probability of the
        evidence. Raises ValueError for a mask of another shape or type.
        """
        batch, longest, tags, _ = self.potentials.shape
        legal = torch.ones_like(self.potentials, dtype=torch.bool)
        if allowed is not None:
            legal &= _check("allowed", allowed, (batch, longest, tags)).to(legal.device)[:, :, None]
        if moves is not None:
            shape = (tags, tags) if moves.dim() == 2 else (batch, longest, tags, tags)
            _check("moves", moves, shape)
            legal[:, 1:] &= (moves if moves.dim() == 2 else moves[:, 1:]).to(legal.device)
        if start is not None:
            legal[:, 0] &= _check("start", start, (tags,)).to(legal.device)
        if end is not None:
            last = (torch.arange(batch), self.lengths - 1)
            legal[last] &= _check("end", end, (tags,)).to(legal.device)
        return LinearChain(self.potentials.masked_fill(~legal, -torch.inf), self.lengths)

    # ---------------------------------------------------------------------- inference

    @property
    def _compiled(self) -> bool:
        known = self.potentials.dtype in (torch.float32, torch.float64)
        return known and self.potentials.device.type == "cpu" and kernels.available()

    @cached_property
    def _mask(self) -> Tensor:
        """(B, n) bool, true at the places of the sentences."""
        with _recording():
            places = torch.arange(self.potentials.shape[1])
            return (places < self.lengths[:, None]).to(self.potentials.device)

    # What is cached is recorded for gradients whenever the potentials have them, even if
    # it was first asked for under no_grad: a later loss must not take it for a constant.

    @cached_property
    def _log_z(self) -> Tensor:
        """log Z, (B,) float64."""
        with _recording():
            if not self._compiled:
                return self._total(Log(), self.potentials)[0]
            if self.potentials.requires_grad:
                return cast(Tensor, _LogPartition.apply(self.potentials, self.lengths))
        from spacy_psa.kernels import chain as kernel

        potentials = self.potentials.contiguous().numpy()
        return torch.from_numpy(kernel.log_partition(potentials, self.lengths.numpy()))

    @cached_property
    def _expected(self) -> Tensor:
        """The gradient of log Z, (B, n, K, K); in row 0 of t = 0 the first marginals."""
        if self.potentials.requires_grad:
            with _recording():
                total = self._total(Log(), self.potentials).sum()
                return torch.autograd.grad(total, self.potentials, create_graph=True)[0]
        if self._compiled:
            return _forward_backward(self.potentials, self.lengths)[1]
        with _recording():
            potentials = self.potentials.clone().requires_grad_()
            return torch.autograd.grad(self._total(Log(), potentials).sum(), potentials)[0]

    @cached_property
    def _best(self) -> tuple[Tensor, Tensor]:
        """Scores (B,) float64 and tags (B, n) of the best sequences."""
        if self._compiled:
            from spacy_psa.kernels import chain as kernel

            potentials = self.potentials.detach().contiguous().numpy()
            best = kernel.viterbi(potentials, self.lengths.numpy())
            return torch.from_numpy(best[0]), torch.from_numpy(best[1])
        scores, tags = self._trace(Max())
        return scores[0], tags[0]

    def _kbest(self, k: int) -> tuple[Tensor, Tensor]:
        """Scores (k, B) float64, -inf where there are no more, and tags (k, B, n)."""
        if self._compiled:
            from spacy_psa.kernels import chain as kernel

            potentials = self.potentials.detach().contiguous().numpy()
            best = kernel.kbest(potentials, self.lengths.numpy(), k)
            return torch.from_numpy(best[0]), torch.from_numpy(best[1])
        scores, tags = self._trace(KMax(k))
        missing = k - len(scores)  # there may be fewer than k tag sequences at all
        scores = torch.nn.functional.pad(scores, (0, 0, 0, missing), value=-torch.inf)
        return scores, torch.nn.functional.pad(tags, (0, 0, 0, 0, 0, missing))

    def _trace(self, semiring: Semiring) -> tuple[Tensor, Tensor]:
        """Scores (m, B) float64 and tags (m, B, n) of the sequences a semiring keeps."""
        with _recording():
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
        """The sum over all sequences, a semiring value (m, B) in float64."""
        return semiring.sum(self._scan(semiring, self._steps(potentials))[-1], -1)

    def _steps(self, potentials: Tensor) -> list[Tensor]:
        """n tensors (B, K, K): the log potentials, or the unit matrix beyond the length."""
        unit = torch.full_like(potentials[0, 0], -torch.inf, requires_grad=False)
        unit.fill_diagonal_(0.0)
        # Not n slices, whose gradients would be n tensors of the size of the potentials.
        return list(torch.where(self._mask[:, :, None, None], potentials, unit).unbind(1))

    @staticmethod
    def _scan(semiring: Semiring, steps: list[Tensor]) -> list[Tensor]:
        """The sums over all sequences that end in a tag at a place: n values (m, B, K)."""
        values = [semiring.lift(steps[0][:, 0].double())]
        for step in steps[1:]:
            scores = semiring.lift(step.double())
            values.append(semiring.sum(semiring.times(values[-1][..., None], scores), -2))
        return values

    def _score(self, tags: Tensor) -> Tensor:
        """(B,) float64."""
        batch, longest, count, _ = self.potentials.shape
        if tags.shape != (batch, longest):
            raise ValueError(f"tags must be ({batch}, {longest}), not {tuple(tags.shape)}")
        tags = tags.to(self.potentials.device).masked_fill(~self._mask, 0)
        if bool(((tags < 0) | (tags >= count)).any()):
            raise ValueError(f"tags must be from 0 to {count - 1}")
        previous = torch.nn.functional.pad(tags[:, :-1], (1, 0))
        pairs = self.potentials.flatten(2).gather(2, (previous * count + tags)[:, :, None])
        return pairs[:, :, 0].masked_fill(~self._mask, 0.0).double().sum(1)

    def _check_possible(self, scores: Tensor) -> None:
        impossible = (scores == -torch.inf).nonzero()[:, 0].tolist()
        if impossible:
            raise ValueError(f"no tag sequence is possible for the sentences {impossible}")


@contextmanager
def _recording() -> Iterator[None]:
    """Gradients are recorded inside, even under `no_grad` and `inference_mode`."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


class _LogPartition(torch.autograd.Function):
    """log Z (B,) by the kernel; its gradient is the expected counts of the steps."""

    @staticmethod
    def forward(ctx: Any, potentials: Tensor, lengths: Tensor) -> Tensor:
        log_z, expected = _forward_backward(potentials, lengths)
        ctx.save_for_backward(potentials, lengths, expected)
        return log_z

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        potentials, lengths, expected = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph: it will be differentiated again
            expected = LinearChain(potentials, lengths)._expected
        return gradient.to(expected.dtype)[:, None, None, None] * expected, None


def _forward_backward(potentials: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    from spacy_psa.kernels import chain as kernel

    values = potentials.detach().contiguous().numpy()
    log_z, expected = kernel.forward_backward(values, lengths.numpy())
    return torch.from_numpy(log_z), torch.from_numpy(expected)


def _check(name: str, mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    if mask.shape != shape or mask.dtype != torch.bool:
        raise ValueError(f"{name} must be bool {shape}, not {mask.dtype} {tuple(mask.shape)}")
    return mask
