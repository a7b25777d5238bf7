"""A distribution over spans in one layer for each label, which do not see each other.

    p(S) = Π_l exp(Σ_{(i,j,l) in S} s(i, j, l)) / Z_l

Spans of one label do not overlap: a semi-Markov chain for each label (Sarawagi, Cohen 2004), whose
segments are spans, or tokens outside of all. Spans of different labels may overlap in any way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from spacy_psa import kernels
from spacy_psa.ragged import positions, to_device
from spacy_psa.structs.distribution import recording
from spacy_psa.structs.nested_spans import NestedSpans
from spacy_psa.structs.semiring import Entropy, KMax, Log, Max, Sample, Semiring
from spacy_psa.structs.span_cells import Constituent, NearCells, Tree
from spacy_psa.structs.tree_evidence import Span, evidence_on
from spacy_psa.structs.tree_kernels import to_numpy


class LabelLayers(NestedSpans):
    """A distribution over the sets of spans of B sentences, in which one label does not overlap.

    Arguments, values and answers are those of `NestedSpans`. A value is ordered by start, then by
    descending end, then by label. The compiled `kernels.label_layers` finds the best sets, the log
    partition and the marginals if it can. Everything else, and gradients of marginals, is a
    recursion over tokens in a semiring, with one step for each token of the longest sentence, for
    all labels together.

    Examples:
        >>> layers = LabelLayers(torch.zeros(3, 2), torch.tensor([2]))  # (0, 1), (0, 2), (1, 2)
        >>> layers.log_partition.exp().round()  # 5 sets of each label
        tensor([25.])
    """

    structure = "set of spans"
    _list = NearCells

    def __init__(self, labelled: Tensor, lengths: Tensor, longest: int | None = None) -> None:
        super().__init__(labelled, lengths, longest)
        # (N, L) float64: 0, or -inf where a token must be in a span of the label.
        self._null = labelled.new_zeros(int(lengths.sum()), labelled.shape[1], dtype=torch.float64)

    def _null_of(self, sentence: int) -> Tensor:
        return self._null.split(self.lengths.tolist())[sentence]

    # ---------------------------------------------------------------------- inference

    def _total(self, semiring: Semiring, labelled: Tensor, size: int = 1) -> Tensor:
        """Sum over all sets: a semiring value (size, B) in float64."""

        def fit(values: Tensor) -> Tensor:
            if len(values) > size:
                values = semiring.sum(values[..., None], -1)
            return pad(
                values, (0, 0) * (values.dim() - 1) + (0, size - len(values)), value=-torch.inf
            )

        cells, device = self._cells, labelled.device
        sentence, start = to_device(cells.sentence, device), to_device(cells.start, device)
        more = to_device(cells.end - cells.start, device) - 1
        batch, n, labels = len(self.lengths), int(self.lengths.max()), labelled.shape[1]
        dense = labelled.new_full((batch, n, cells.width, labels), -torch.inf, dtype=torch.float64)
        dense = dense.index_put((sentence, start, more), labelled.double())
        outside = dense.new_zeros(batch, n, labels)
        outside = outside.index_put(positions(self.lengths, device), to_device(self._null, device))
        sums = [fit(semiring.lift(dense.new_zeros(batch, labels)))]
        for end in range(1, n + 1):
            wide = min(cells.width, end)
            starts = torch.arange(end - 1, end - wide - 1, -1, device=device)
            steps = torch.cat(
                [outside[:, end - 1, None], dense[:, starts, torch.arange(wide, device=device)]], 1
            )
            before = torch.stack([sums[end - 1], *(sums[i] for i in starts.tolist())], 2)
            sums.append(fit(semiring.sum(semiring.times(before, semiring.lift(steps)), -2)))
        every = torch.stack(sums, 2)
        at = to_device(self.lengths, device)[None, :, None, None].expand(size, -1, 1, labels)
        last = every.gather(2, at)[:, :, 0]
        joint = last[..., 0]
        for label in range(1, labels):
            joint = fit(semiring.sum(semiring.times(joint, last[..., label])[..., None], -1))
        return joint

    @property
    def _compiled(self) -> bool:
        return kernels.available()

    @cached_property
    def _log_z(self) -> Tensor:
        with recording():
            if not self._compiled:
                return self._total(Log(), self.labelled)[0]
            if self.labelled.requires_grad:
                return cast(Tensor, _LogPartition.apply(self.labelled, self))
        return self._forward_backward[0]

    @cached_property
    def _forward_backward(self) -> tuple[Tensor, Tensor]:
        """The log partitions (B,) and the marginals (S, L), in float64 and without gradients."""
        from spacy_psa.kernels.label_layers import forward_backward

        log_z, marginals = map(torch.from_numpy, forward_backward(*self._arrays))
        device = self.labelled.device
        return to_device(log_z, device), to_device(marginals, device)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        """The arguments of the kernels."""
        arrays = to_numpy(self.labelled), to_numpy(self._null), self.lengths.numpy()
        return *arrays, self._cells.width

    @cached_property
    def marginals(self) -> Tensor:
        """The probability of each span and label, (S, L), in the layout of `labelled`."""
        keep = self.labelled.requires_grad
        if self._compiled and not keep:
            return self._forward_backward[1].to(self.dtype)
        return self._expected(keep)

    def _expected(self, keep: bool) -> Tensor:
        """Compute the marginals as a gradient; with `keep`, it can be differentiated again."""
        with recording():
            labelled = self.labelled if keep else self.labelled.detach().clone().requires_grad_()
            total = self._total(Log(), labelled).sum()
            (marginals,) = torch.autograd.grad(total, labelled, create_graph=keep)
        return marginals

    @cached_property
    def entropy(self) -> Tensor:
        """The entropy of the distribution over sets of spans, (B,) nats."""
        with recording():
            return self._total(Entropy(), self.labelled, 2)[1].to(self.dtype)

    @property
    def _empty(self) -> Tensor:
        owner = positions(self.lengths, self._null.device)[0]
        start = self._null.new_zeros(len(self.lengths))
        return start.index_add(0, owner, self._null.sum(1))

    @cached_property
    def _best_set(self) -> tuple[Tensor, Tensor, Tensor]:
        if not self._compiled:
            scores, ((rows, labels),) = self._trace(Max(), 1)
            return scores[0], rows, labels
        from spacy_psa.kernels.label_layers import viterbi

        best, rows, labels = map(torch.from_numpy, viterbi(*self._arrays))
        return to_device(best, self.labelled.device), rows, labels

    def _kbest(self, k: int) -> tuple[Tensor, list[list[Tree]]]:
        # Time and memory grow with k squared, so ask for no more sets than there are.
        possible = self.with_scores(torch.where(self.labelled > -torch.inf, 0.0, -torch.inf))
        k = max(1, min(k, round(float(possible._log_z.max().exp().clamp(max=k)))))
        scores, ranked = self._trace(KMax(k), k)
        return scores, [self.sets(*spans) for spans in ranked]

    def _sample(self, n: int, generator: torch.Generator | None) -> list[list[Tree]]:
        copies: Any = self.join([self] * n)
        _, (spans,) = copies._trace(Sample(generator), 1)
        drawn = copies.sets(*spans)
        return [drawn[b :: len(self.lengths)] for b in range(len(self.lengths))]

    def _trace(self, semiring: Semiring, k: int) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Return scores (k, B) float64, and the rows and labels of the k sets that are kept."""
        kept = []
        with recording():
            labelled = self.labelled.detach().clone().requires_grad_()
            scores = self._total(semiring, labelled, k)
            for score in scores:
                (chosen,) = torch.autograd.grad(score.sum(), labelled, retain_graph=True)
                possible = (score > -torch.inf).cpu()[self.sentence]
                rows, labels = (chosen.cpu() * possible[:, None]).nonzero().unbind(1)
                kept.append((rows, labels))
        return scores.detach(), kept

    def _score(self, values: Sequence[Iterable[Constituent]]) -> Tensor:
        labels = self.labelled.shape[1]
        scores = self.labelled.new_zeros(len(self.lengths), dtype=torch.float64)
        nodes, outside = [], self._null.detach().clone()
        first = 0
        for b, (own, n) in enumerate(zip(values, self.lengths.tolist(), strict=True)):
            ordered = sorted(own, key=lambda span: (span[2], span[0], span[1]))
            for before, after in pairwise(ordered):
                if before[2] == after[2] and after[0] < before[1]:
                    raise ValueError(f"sentence {b}: {before} and {after} overlap")
            for start, end, label in ordered:
                if not 1 <= label <= labels:
                    raise ValueError(f"sentence {b}: label {label} is not from 1 to {labels}")
                nodes.append((b, self.row(b, start, end), label - 1))
                outside[first + start : first + end, label - 1] = 0.0
            first += n
        if nodes:
            owner, rows, columns = to_device(torch.tensor(nodes), scores.device).unbind(1)
            scored = self.labelled[rows, columns].double().masked_fill(rows < 0, -torch.inf)
            scores = scores.index_add(0, owner, scored)
        return scores.index_add(0, positions(self.lengths, scores.device)[0], outside.sum(1))

    # ----------------------------------------------------------------------- evidence

    def constrain(
        self,
        allowed: Tensor | None = None,
        *,
        required: Sequence[Iterable[Span]] | None = None,
        forbidden: Sequence[Iterable[Span]] | None = None,
    ) -> LabelLayers:
        """Condition on evidence, as `NestedSpans.constrain` does.

        Raises:
            ValueError: as `NestedSpans.constrain`, and for a required span of several labels.
        """
        batch, labels = len(self.lengths), self.labelled.shape[1]
        cells, outside = self._cells, self._null.cpu().clone()
        legal = torch.ones(len(self.labelled), labels, dtype=torch.bool)
        if allowed is not None:
            legal &= allowed.cpu()
        first = torch.cumsum(self.lengths, 0) - self.lengths
        for b, start, end, chosen in evidence_on("required", required, batch, labels + 1):
            if int(chosen.sum()) != 1:
                raise ValueError(f"sentence {b}: the required span {start, end} needs one label")
            label = int(chosen.nonzero()) - 1
            own = cells.of(b)
            over = (cells.start[own] < end) & (start < cells.end[own])
            if (row := self.row(b, start, end)) >= 0:
                over[row - own.start] = False
            legal[own, label] &= ~over
            outside[int(first[b]) + start : int(first[b]) + end, label] = -torch.inf
        for b, start, end, chosen in evidence_on("forbidden", forbidden, batch, labels + 1):
            row = self.row(b, start, end)
            if row >= 0:
                legal[row] &= ~chosen[1:]
        labelled = self.labelled.masked_fill(~to_device(legal, self.labelled.device), -torch.inf)
        null = to_device(outside, self._null.device)
        return type(self).__new__(type(self))._fill(labelled, null, cells)


class _LogPartition(torch.autograd.Function):
    """Computes log Z (B,) by the kernel; the gradient is the marginals."""

    @staticmethod
    def forward(ctx: Any, labelled: Tensor, dist: LabelLayers) -> Tensor:
        log_z, marginals = dist._forward_backward
        ctx.save_for_backward(labelled, marginals)
        ctx.rest = dist._null, dist._cells
        return log_z

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        labelled, marginals = ctx.saved_tensors
        null, cells = ctx.rest
        if torch.is_grad_enabled():  # create_graph: it will be differentiated again
            marginals = (
                LabelLayers.__new__(LabelLayers)._fill(labelled, null, cells)._expected(True)
            )
        owner = to_device(cells.sentence, gradient.device)
        return (gradient[owner, None] * marginals).to(labelled.dtype), None
