"""The analyses without some spans, exactly: as a chain over more tags."""

from __future__ import annotations

import torch
from torch import Tensor

from spacy_psa.pipeline.chain.span_tags import Spans, SpanScheme
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
        """Give spans of a sentence, read by `scheme`, their labels."""
        return [(start, end, self.label(row, name)) for start, end, name in named]


def without_spans(chain: LinearChain, scheme: SpanScheme, wrong: list[Spans]) -> RefinedChain:
    """Leave out the analyses that have one of the wrong spans.

    The log partition sums over the remaining analyses exactly, and gradients flow to the
    potentials of the given chain.

    Whether a span that ends at a token is wrong depends on where it began. So the spans with the
    start and the label of a wrong span get a label of their own, which no other span has, with the
    potentials of their label. The tags that would end such a span at a wrong place are excluded.
    Nothing is subtracted, so no digits are lost, however probable the wrong spans were.

    Args:
        chain: a distribution over the K tags of B sentences, given everything else that is known.
        wrong: for each sentence, spans (start, end, label), which may overlap and share ends.

    Raises:
        ValueError: if a span is not within its sentence.
    """
    batch, longest, k, _ = chain.potentials.shape
    for row, length in enumerate(chain.lengths.tolist()):
        for start, end, label in wrong[row]:
            if not 0 <= start < end <= length:
                raise ValueError(
                    f"{(start, end, label)} is not a span of a sentence of {length} tokens"
                )
    starts = [sorted({(s, label) for s, e, label in spans if e - s > 1}) for spans in wrong]
    # No label of a corpus has a null character.
    names = [f"\0{i}" for i in range(max(map(len, starts), default=0))]
    own = [dict(zip(keys, names)) for keys in starts]
    wide = SpanScheme([*scheme.labels, *names], scheme.tag_format)
    size = len(wide.tags)
    base = torch.cat([torch.arange(k), torch.zeros(size - k, dtype=torch.int64)]).repeat(batch, 1)
    there = torch.zeros(batch, longest, size, size, dtype=torch.bool)
    there[..., :k] = True
    for row, length in enumerate(chain.lengths.tolist()):
        for (start, label), name in own[row].items():
            for prefix in scheme.prefixes:
                base[row, wide.tag(prefix, name)] = scheme.tag(prefix, label)
            _rename(there[row], wide, start, label, name)
        for start, end, label in wrong[row]:
            _forbid(there[row, :length], wide, start, end, own[row].get((start, label), label))
    at = base.to(chain.potentials.device)
    rows = at[:, None, :, None].expand(-1, longest, -1, k)
    columns = at[:, None, None, :].expand(-1, longest, size, -1)
    potentials = chain.potentials.gather(2, rows).gather(3, columns)
    potentials = potentials.masked_fill(~there.to(potentials.device), -torch.inf)
    return RefinedChain(LinearChain(potentials, chain.lengths), wide, base, k, own)


def _rename(there: Tensor, scheme: SpanScheme, start: int, label: str, name: str) -> None:
    """Give the spans of a label that begin at a token another name.

    Args:
        there: (n, K', K') bool, the transitions of a sentence that are possible; changed in place.
        start: the token.
        label: the label.
        name: the name.
    """
    for prefix in ("B", "S"):
        there[start, :, scheme.tag(prefix, label)] = False
        there[start, :, scheme.tag(prefix, name)] = True
    for before in (scheme.tag("B", name), scheme.tag("I", name)):
        for prefix in ("I", "E"):
            there[start + 1 :, before, scheme.tag(prefix, label)] = False
            there[start + 1 :, before, scheme.tag(prefix, name)] = True


def _forbid(there: Tensor, scheme: SpanScheme, start: int, end: int, name: str) -> None:
    """Exclude the transitions that end a wrong span.

    Args:
        there: (n, K', K') bool, the transitions of a sentence that are possible; changed in place.
        start: the first token of the span.
        end: the token after its last one.
        name: its label; if it has several tokens, one that only spans with this start have.
    """
    single = end - start == 1
    if scheme.tag_format == "BIOES":
        there[end - 1, :, scheme.tag("S" if single else "E", name)] = False
        return
    last, inside = scheme.tag("B" if single else "I", name), scheme.tag("I", name)
    if end == len(there):
        there[end - 1, :, last] = False
    else:
        others = torch.arange(there.shape[-1]) != inside
        there[end, last, others] = False
