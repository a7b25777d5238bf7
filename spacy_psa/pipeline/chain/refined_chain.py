"""The analyses in which some spans weigh more or less, exactly: as a chain over more tags."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from spacy_psa.pipeline.chain.span_tags import Labelled, Spans, SpanScheme
from spacy_psa.structs.chain import LinearChain


class RefinedChain(LinearChain):
    """A `LinearChain` in which some spans have labels of their own.

    Its sequences are over the tags of `scheme`, which has the K tags of the component and those of
    the labels of its own. Each analysis still has exactly one sequence. Whatever reads a chain with
    its scheme reads this one likewise, and then asks for the label that a name stands for.

    Args:
        chain: the distribution over more tags.
        scheme: the meaning of its tags.
        base: (B, K') int64, the tag of the component that each tag stands for.
        count: K, the number of tags of the component.
        own: for each sentence, the name in `scheme` of spans with a (start, label).
    """

    def __init__(
        self,
        chain: LinearChain,
        scheme: SpanScheme,
        base: Tensor,
        count: int,
        own: list[dict[tuple[int, str], str]],
    ) -> None:
        self.potentials = chain.potentials
        self.lengths = chain.lengths
        self.scheme = scheme
        self.base = base
        self.count = count
        self.own = own

    def double(self) -> RefinedChain:
        return RefinedChain(super().double(), self.scheme, self.base, self.count, self.own)

    def select(self, rows: Tensor) -> RefinedChain:
        own = [self.own[row] for row in rows.tolist()]
        return RefinedChain(super().select(rows), self.scheme, self.base[rows], self.count, own)

    def replaced(self, flat: Tensor) -> RefinedChain:
        """Make the chain with other potentials, given flat."""
        chain = LinearChain(flat.view_as(self.potentials), self.lengths)
        return RefinedChain(chain, self.scheme, self.base, self.count, self.own)

    def fold(self, values: Tensor) -> Tensor:
        """Sum the values (B, n, K') of tags that stand for the same tag, (B, n, K)."""
        target = values.new_zeros(*values.shape[:2], self.count)
        return target.scatter_add(2, self.base[:, None].expand_as(values).to(values.device), values)

    def name(self, row: int, start: int, label: str) -> str:
        """Find the name in `scheme` of the spans with this start and label in a sentence."""
        return self.own[row].get((start, label), label)

    def label(self, row: int, name: str) -> str:
        """Find the label that a name of `scheme` stands for in a sentence."""
        return next((label for (_, label), own in self.own[row].items() if own == name), name)

    def spans(self, row: int, named: Spans) -> Spans:
        """Return spans of a sentence, which were read by `scheme`, with their labels."""
        return [(start, end, self.label(row, name)) for start, end, name in named]


def without_spans(chain: LinearChain, scheme: SpanScheme, wrong: Sequence[Spans]) -> RefinedChain:
    """Leave out the analyses that have one of the wrong spans; see `with_weights`."""
    return with_weights(chain, scheme, [dict.fromkeys(spans, -math.inf) for spans in wrong])


def with_weights(
    chain: LinearChain, scheme: SpanScheme, weights: Sequence[Mapping[Labelled, float]]
) -> RefinedChain:
    """Multiply the probability of each analysis by exp(w) for each of its spans with a weight w.

    The weight is added to the log odds of the span. With -inf, no analysis has it. The log
    partition is exact, and gradients flow to the potentials of the given chain.

    Args:
        weights: for each sentence, spans (start, end, label), which may overlap and share ends.

    Raises:
        ValueError: if a span is not within its sentence.
    """
    refined, ends, numbers = with_names(chain, scheme, [list(own) for own in weights])
    flat = refined.potentials.flatten()
    values = flat.new_tensor([value for own in weights for value in own.values()])[numbers]
    wrong = values == -torch.inf
    if wrong.any():  # not by a sum, whose gradient is not a number where it is all -inf
        flat = flat.index_fill(0, ends[wrong], -torch.inf)
    if not wrong.all():
        flat = flat.index_add(0, ends[~wrong], values[~wrong])
    return refined.replaced(flat)


def with_names(
    chain: LinearChain, scheme: SpanScheme, spans: Sequence[Spans]
) -> tuple[RefinedChain, Tensor, Tensor]:
    """Tell some spans apart from all others, without a change of the distribution.

    Whether such a span ends at a token depends on where it began. So the spans with its start and
    its label get a label of their own, which no other span has, with the potentials of their label.
    Nothing is subtracted, so no digits are lost, however probable the spans are.

    Returns:
        The chain; the places in its flat potentials of the pairs of tags that end one of the spans,
        (M,) int64; and for each place the number of the span, counted through all sentences, (M,).

    Raises:
        ValueError: if a span is not within its sentence.
    """
    batch, longest, k, _ = chain.potentials.shape
    for row, length in enumerate(chain.lengths.tolist()):
        for start, end, label in spans[row]:
            if not 0 <= start < end <= length:
                raise ValueError(
                    f"{(start, end, label)} is not a span of a sentence of {length} tokens"
                )
    starts = [sorted({(s, label) for s, e, label in own if e - s > 1}) for own in spans]
    # No label of a corpus has a null character.
    names = [f"\0{i}" for i in range(max(map(len, starts), default=0))]
    own = [dict(zip(keys, names)) for keys in starts]
    wide = SpanScheme([*scheme.labels, *names], scheme.tag_format)
    size = len(wide.tags)
    base = torch.cat([torch.arange(k), torch.zeros(size - k, dtype=torch.int64)]).repeat(batch, 1)
    there = torch.zeros(batch, longest, size, size, dtype=torch.bool)
    there[..., :k] = True
    ends = [torch.zeros(0, dtype=torch.int64)]
    for row, length in enumerate(chain.lengths.tolist()):
        for (start, label), name in own[row].items():
            for prefix in scheme.prefixes:
                base[row, wide.tag(prefix, name)] = scheme.tag(prefix, label)
            _rename(there[row], wide, start, label, name)
        for start, end, label in spans[row]:
            places = _ends(wide, length, start, end, own[row].get((start, label), label))
            ends.append(row * longest * size * size + places)
    numbers = torch.repeat_interleave(torch.tensor([*map(len, ends[1:])], dtype=torch.int64))
    at = base.to(chain.potentials.device)
    rows = at[:, None, :, None].expand(-1, longest, -1, k)
    columns = at[:, None, None, :].expand(-1, longest, size, -1)
    potentials = chain.potentials.gather(2, rows).gather(3, columns)
    potentials = potentials.masked_fill(~there.to(potentials.device), -torch.inf)
    refined = RefinedChain(LinearChain(potentials, chain.lengths), wide, base, k, own)
    return refined, torch.cat(ends).to(potentials.device), numbers.to(potentials.device)


def _rename(there: Tensor, scheme: SpanScheme, start: int, label: str, name: str) -> None:
    """Rename spans that begin at a token, in the possible transitions (n, K', K') of a sentence."""
    for prefix in ("B", "S"):
        there[start, :, scheme.tag(prefix, label)] = False
        there[start, :, scheme.tag(prefix, name)] = True
    for before in (scheme.tag("B", name), scheme.tag("I", name)):
        for prefix in ("I", "E"):
            there[start + 1 :, before, scheme.tag(prefix, label)] = False
            there[start + 1 :, before, scheme.tag(prefix, name)] = True


def _ends(scheme: SpanScheme, length: int, start: int, end: int, name: str) -> Tensor:
    """Find the transitions that end a span, as places in the flat (n, K', K') of its sentence.

    If the span has several tokens, `name` is a label that only spans with this start have.
    """
    single, size = end - start == 1, len(scheme.tags)
    every = torch.arange(size)
    if scheme.tag_format == "BIOES":
        return ((end - 1) * size + every) * size + scheme.tag("S" if single else "E", name)
    last, inside = scheme.tag("B" if single else "I", name), scheme.tag("I", name)
    if end == length:
        return ((end - 1) * size + every) * size + last
    return (end * size + last) * size + every[every != inside]
