"""A linear chain that only holds the potentials of legal pairs of tags."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from spacy_psa.kernels import gpu_chain
from spacy_psa.ragged import pad, positions, to_device
from spacy_psa.structs.chain import LinearChain, is_compiled
from spacy_psa.structs.distribution import recording


class TagPairs:
    """The pairs (previous tag, tag) that a chain over K tags may have.

    Args:
        legal: (K, K) bool, the tags (columns) that may follow a tag (rows).

    Attributes:
        tags: K.
        previous: (P,) int64, the previous tag of each pair; the pairs are sorted by tag, then by
            previous tag.
        tag: (P,) int64, the tag of each pair.
        begins: (K + 1,) int64; the pairs of tag y are those from `begins[y]` to `begins[y + 1]`.

    Raises:
        ValueError: if no tag may come before some tag.

    Examples:
        >>> pairs = TagPairs(numpy.array([[True, False], [True, True]]))
        >>> list(zip(pairs.previous.tolist(), pairs.tag.tolist()))
        [(0, 0), (1, 0), (1, 1)]
        >>> len(pairs)
        3
    """

    def __init__(self, legal: NDArray[numpy.bool_]):
        tag, previous = numpy.nonzero(legal.T)
        self.tags = len(legal)
        begins = numpy.searchsorted(tag, numpy.arange(self.tags + 1))
        if (numpy.diff(begins) == 0).any():
            lonely = int(numpy.flatnonzero(numpy.diff(begins) == 0)[0])
            raise ValueError(f"no tag may come before tag {lonely}: each tag needs one")
        self.previous = torch.from_numpy(previous)
        self.tag = torch.from_numpy(tag)
        self.begins = torch.from_numpy(begins)
        self._on: dict[torch.device, gpu_chain.PairIndex] = {}

    def __len__(self) -> int:
        return len(self.tag)

    def on(self, device: torch.device) -> gpu_chain.PairIndex:
        """The pairs as the kernels of a GPU need them; made once for each GPU."""
        if device not in self._on:
            self._on[device] = gpu_chain.pair_index(self.previous, self.begins, device)
        return self._on[device]

    @cached_property
    def places(self) -> Tensor:
        """(K, K) int64, the number of each pair; P for pairs that are not legal."""
        count = len(self.tag)
        places = torch.full((self.tags, self.tags), count)
        places[self.previous, self.tag] = torch.arange(count)
        return places

    @cached_property
    def block(self) -> tuple[Tensor, Tensor]:
        """The largest set of tags that the same tags may precede: those tags, and the set.

        In BIOES they are the O, E and S tags, and the O, B and S tags. Both are int64, ascending.
        """
        blocks: dict[bytes, list[int]] = {}
        legal = (self.places < len(self)).T.contiguous().numpy()
        for tag, before in enumerate(legal):
            blocks.setdefault(before.tobytes(), []).append(tag)
        tags = max(blocks.values(), key=lambda tags: len(tags) * int(legal[tags[0]].sum()))
        return torch.from_numpy(numpy.flatnonzero(legal[tags[0]])), torch.tensor(tags)


class PairChain(LinearChain):
    """A `LinearChain` whose other pairs of tags are impossible; it stores no numbers for them.

    Its answers are those of the chain with -inf at these pairs. In BIOES with 18 labels, 1,441 of
    5,329 pairs are legal, so this chain is smaller and faster. Where there is no compiled kernel
    for pairs (`kbest`, `sample`, `pairwise_marginals`, second derivatives), the whole `potentials`
    are made first.

    Args:
        flat: (N, P) float, the log potentials of the pairs at the tokens of a ragged batch of B
            sentences. At the first token of a sentence, the first pair of each tag holds the score
            of starting with the tag, and the others are not read.
        lengths: (B,) int64, the tokens of each sentence, at least 1 each.
        pairs: the P legal pairs.

    Raises:
        ValueError: for shapes that do not fit.

    Examples:
        >>> pairs = TagPairs(numpy.array([[True, False], [True, True]]))  # no 1 after 0
        >>> chain = PairChain(torch.zeros(3, 3), torch.tensor([3]), pairs)
        >>> chain.log_partition.exp()  # 000, 100, 110, 111
        tensor([4.])
    """

    def __init__(self, flat: Tensor, lengths: Tensor, pairs: TagPairs) -> None:
        shape = int(lengths.sum()), len(pairs.tag)
        if flat.shape != shape:
            raise ValueError(f"potentials must be of shape {shape}, not {tuple(flat.shape)}")
        self.flat = flat
        self.lengths = lengths
        self.pairs = pairs

    @cached_property
    def potentials(self) -> Tensor:  # type: ignore[override]
        """(B, n, K, K), -inf at illegal pairs; see `LinearChain`."""
        with recording():
            missing = self.flat.new_full((len(self.flat), 1), -torch.inf)
            dense = torch.cat([self.flat, missing], 1)[:, to_device(self.pairs.places, self.device)]
            starts = self.flat[self._first][:, None, to_device(self.pairs.begins[:-1], self.device)]
            dense = dense.index_put((self._first,), starts)
            return pad(dense, self.lengths)

    @property
    def dtype(self) -> torch.dtype:
        return self.flat.dtype

    @cached_property
    def device(self) -> torch.device:
        return self.flat.device

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.lengths), int(self.lengths.max()), self.pairs.tags

    def split(self) -> list[LinearChain]:
        lengths = self.lengths.tolist()
        parts = zip(self.flat.split(lengths), self.lengths.split(1), strict=True)
        return [PairChain(flat, length, self.pairs) for flat, length in parts]

    def double(self) -> PairChain:
        return PairChain(self.flat.double(), self.lengths, self.pairs)

    def select(self, rows: Tensor) -> PairChain:
        kept = torch.isin(positions(self.lengths)[0], rows)
        return PairChain(self.flat[to_device(kept, self.device)], self.lengths[rows], self.pairs)

    def uniform(self) -> PairChain:
        even = torch.zeros_like(self.flat).masked_fill(self.flat == -torch.inf, -torch.inf)
        return PairChain(even, self.lengths, self.pairs)

    def tilted(self, scores: Tensor) -> PairChain:
        by_token, tag = scores[positions(self.lengths, self.device)], self.pairs.tag
        return PairChain(
            self.flat + by_token[:, to_device(tag, self.device)], self.lengths, self.pairs
        )

    def expected_score(self, other: LinearChain) -> Tensor:
        if not has_pairs(other, self.pairs) or not other._compiled:
            return super().expected_score(other)
        counts = cast(PairChain, other).flat_marginals
        parts = torch.where(counts > 0, counts.double() * self.flat, 0.0).sum(1)
        sentence = positions(self.lengths, self.device)[0]
        return parts.new_zeros(len(self.lengths)).index_add(0, sentence, parts)

    @cached_property
    def marginals(self) -> Tensor:
        if not self._compiled or self._requires_grad:
            return super().marginals
        by_tag = self.flat.new_zeros(len(self.flat), self.pairs.tags)
        by_tag.index_add_(1, to_device(self.pairs.tag, self.device), self.flat_marginals)
        return pad(by_tag, self.lengths)

    @cached_property
    def flat_marginals(self) -> Tensor:
        """The probability of each pair of tags at each token, (N, P), without gradients.

        At the first token of a sentence, the first pair of each tag holds the probability of the
        tag, and the others hold 0. Compare `LinearChain.pairwise_marginals`.
        """
        if self._compiled:
            return cast(Tensor, _run("forward_backward", self.flat, self.lengths, self.pairs)[1])
        chain = PairChain(self.flat.detach().requires_grad_(), self.lengths, self.pairs)
        return torch.autograd.grad(chain._log_z.sum(), chain.flat)[0]

    def marginals_of(self, previous: Tensor, tags: Tensor) -> Tensor:
        legal = self.pairs.places[previous, tags]
        by_pair = torch.nn.functional.pad(self.flat_marginals, (0, 1))  # of illegal pairs
        marginals = by_pair[:, to_device(legal, self.device)]
        marginals[self._first] = 0.0
        return pad(marginals, self.lengths)

    def potentials_of(self, previous: Tensor, tags: Tensor) -> Tensor:
        by_pair = torch.nn.functional.pad(self.flat, (0, 1), value=-torch.inf)
        chosen = by_pair[:, to_device(self.pairs.places[previous, tags], self.device)]
        starts = self.flat[self._first][:, to_device(self.pairs.begins[tags], self.device)]
        return pad(chosen.index_put((self._first,), starts), self.lengths)

    @property
    def possible(self) -> tuple[Tensor, Tensor]:
        return self.pairs.previous, self.pairs.tag

    def marginals_but(self, previous: Tensor, tags: Tensor) -> Tensor:
        out = torch.full((self.pairs.tags,), -1).index_copy(0, previous, tags)
        left_out = out[self.pairs.previous]
        kept = ((left_out >= 0) & (left_out != self.pairs.tag)).nonzero()[:, 0]
        kept = to_device(kept, self.device)
        sums = self.flat.new_zeros(len(self.flat), self.pairs.tags, dtype=torch.float64)
        before = to_device(self.pairs.previous, self.device)[kept]
        sums.index_add_(1, before, self.flat_marginals[:, kept].double())
        sums[self._first] = 0.0
        return pad(sums[:, to_device(previous, self.device)].to(self.dtype), self.lengths)

    def _constrained(
        self,
        allowed: Tensor | None,
        transitions: Tensor | None,
        start: Tensor | None,
        end: Tensor | None,
    ) -> LinearChain:
        if transitions is not None and transitions.dim() != 2:
            return super()._constrained(allowed, transitions, start, end)
        tag, device = self.pairs.tag, self.device
        if transitions is None and allowed is None:
            flat = self.flat.clone()
        else:
            legal = torch.ones(self.flat.shape, dtype=torch.bool, device=device)
            if transitions is not None:
                legal &= to_device(transitions[self.pairs.previous, tag], device)
                legal[self._first] = True
            if allowed is not None:
                own = to_device(allowed, device)[positions(self.lengths, device)]
                legal &= own[:, to_device(tag, device)]
            flat = self.flat.masked_fill(~legal, -torch.inf)
        for rows, possible in ((self._first, start), (self._last, end)):
            if possible is not None:  # only these rows: there may be very many pairs
                flat[rows] = flat[rows].masked_fill(~to_device(possible[tag], device), -torch.inf)
        return PairChain(flat, self.lengths, self.pairs)

    def joined(self, chains: Sequence[PairChain]) -> PairChain:
        """Make one chain of the sentences of chains over the same pairs, of which it is one."""
        lengths = torch.cat([chain.lengths for chain in chains])
        return PairChain(torch.cat([chain.flat for chain in chains]), lengths, self.pairs)

    @property
    def _compiled(self) -> bool:
        return is_compiled(self.flat, self.pairs.tags)

    @property
    def _requires_grad(self) -> bool:
        return self.flat.requires_grad

    @property
    def _pair_sum(self) -> Tensor:
        expected = self.flat_marginals
        pairs = torch.xlogy(expected, expected).sum(1, dtype=torch.float64)
        sentence = positions(self.lengths, self.device)[0]
        return pairs.new_zeros(len(self.lengths)).index_add(0, sentence, pairs)

    @cached_property
    def _last(self) -> Tensor:
        return to_device(torch.cumsum(self.lengths, 0) - 1, self.device)

    @cached_property
    def _first(self) -> Tensor:
        return self._last + 1 - to_device(self.lengths, self.device)

    @cached_property
    def _log_z(self) -> Tensor:
        if not self._compiled:
            return super()._log_z
        if self.flat.requires_grad:
            with recording():
                return cast(Tensor, _LogPartition.apply(self.flat, self.lengths, self.pairs))
        return cast(Tensor, _run("log_partition", self.flat, self.lengths, self.pairs))

    @cached_property
    def _best(self) -> tuple[Tensor, list[Tensor]]:
        if not self._compiled:
            return super()._best
        scores, tags = _run("viterbi", self.flat, self.lengths, self.pairs)
        return scores, list(tags.split(self.lengths.tolist()))

    def _score(self, values: Sequence[Tensor] | Tensor) -> Tensor:
        tags, device, count = self._checked(values), self.device, self.flat.shape[1]
        previous = torch.nn.functional.pad(tags[:, :-1], (1, 0))
        sentence, place = positions(self.lengths, device)
        flat_tags = tags[sentence, place]
        places = to_device(self.pairs.places, device)[previous[sentence, place], flat_tags]
        places[self._first] = to_device(self.pairs.begins, device)[flat_tags[self._first]]
        scores = self.flat.gather(1, places.clamp(max=count - 1)[:, None])[:, 0]
        scores = torch.where(places < count, scores, -torch.inf).double()
        return scores.new_zeros(len(self.lengths)).index_add(0, sentence, scores)


def join(chains: Sequence[LinearChain]) -> LinearChain:
    """Make one chain of the sentences of several chains.

    Args:
        chains: the chains, at least one. Where some have fewer tags, the further ones of the others
            are impossible in their sentences.

    Returns:
        A `PairChain` if all are, over the same pairs of tags; else a `LinearChain`.

    Examples:
        >>> pairs = TagPairs(numpy.array([[True, False], [True, True]]))
        >>> chain = PairChain(torch.zeros(3, 3), torch.tensor([1, 2]), pairs)
        >>> join([*chain.split(), chain]).lengths
        tensor([1, 2, 1, 2])
    """
    first = chains[0]
    if isinstance(first, PairChain) and all(has_pairs(chain, first.pairs) for chain in chains):
        return first.joined(cast(Sequence[PairChain], chains))
    tags = max(chain.shape[2] for chain in chains)
    wide = [
        torch.nn.functional.pad(row, 2 * (0, tags - chain.shape[2]), value=-torch.inf)
        for chain in chains
        for row in chain.potentials
    ]
    lengths = torch.cat([chain.lengths for chain in chains])
    return LinearChain(torch.nn.utils.rnn.pad_sequence(wide, batch_first=True), lengths)


def has_pairs(chain: LinearChain, pairs: TagPairs) -> bool:
    """Whether a chain is a `PairChain` over these pairs of tags."""
    if not isinstance(chain, PairChain):
        return False
    return chain.pairs is pairs or torch.equal(chain.pairs.places, pairs.places)


class _LogPartition(torch.autograd.Function):
    """Computes log Z (B,) by the kernel; the gradient is the expected counts of the pairs."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, lengths: Tensor, pairs: TagPairs) -> Tensor:
        log_z, expected = _run("forward_backward", flat, lengths, pairs)
        ctx.pairs = pairs
        ctx.save_for_backward(flat, lengths, expected)
        return log_z

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        flat, lengths, expected = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph: it will be differentiated again
            log_z = LinearChain(PairChain(flat, lengths, ctx.pairs).potentials, lengths)._log_z
            expected = torch.autograd.grad(log_z.sum(), flat, create_graph=True)[0]
        sentence = positions(lengths, flat.device)[0]
        return gradient.to(expected.dtype)[sentence, None] * expected, None, None


def _run(name: str, flat: Tensor, lengths: Tensor, pairs: TagPairs) -> Any:
    """Run a kernel by its name; it returns a tensor or a tuple of tensors, without gradients."""
    flat = flat.detach().contiguous()
    if flat.device.type == "cuda":
        return getattr(gpu_chain, name)(flat, lengths, pairs.on(flat.device))
    from spacy_psa.kernels import pair_chain as kernel

    arrays = map(Tensor.numpy, (flat, lengths, pairs.previous, pairs.begins))
    result = getattr(kernel, name)(*arrays)
    if isinstance(result, tuple):
        return tuple(map(torch.from_numpy, result))
    return torch.from_numpy(result)
