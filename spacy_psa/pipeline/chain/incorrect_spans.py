"""Spans that are known to be wrong: a chain without the analyses that have one of them."""

import torch

from spacy_psa.pipeline.chain.span_tags import Spans, SpanScheme
from spacy_psa.structs.chain import LinearChain


def without_spans(chain: LinearChain, scheme: SpanScheme, wrong: list[Spans]) -> LinearChain:
    """The distribution over the analyses that have none of the wrong spans.

    chain: a distribution over the K tags of B sentences, under what else is known.
    wrong: for each sentence, spans (start, end, label), which may overlap and share ends.

    Its log partition is that of what is left, exactly; gradients flow to the chain's
    potentials. Its sequences are over more than K tags: whether the span that ends here is a
    wrong one depends on where it began, so the I tag of a label gets a copy for each start of
    a wrong span of that label. Such a span walks through the copy, with the potentials of I,
    and the moves out of the copy that would end it at a wrong place are not there. Nothing is
    subtracted, so no digits are lost however probable the wrong spans were.

    Raises ValueError for a span that is not within its sentence.
    """
    batch, longest, k, _ = chain.potentials.shape
    for row, length in enumerate(chain.lengths.tolist()):
        for start, end, label in wrong[row]:
            if not 0 <= start < end <= length:
                raise ValueError(f"{(start, end, label)} is no span of a sentence of {length}")
    starts = [sorted({(s, label) for s, e, label in spans if e - s > 1}) for spans in wrong]
    copies = max(map(len, starts))
    base = torch.arange(k + copies).repeat(batch, 1)  # the tag whose potentials one has
    base[:, k:] = 0
    there = torch.zeros(batch, longest, k + copies, k + copies, dtype=torch.bool)
    there[:, :, :k, :k] = True
    for row, length in enumerate(chain.lengths.tolist()):
        inside = {key: k + i for i, key in enumerate(starts[row])}
        for (start, label), copy in inside.items():
            begin, tag = scheme.tag("B", label), scheme.tag("I", label)
            base[row, copy] = tag
            there[row, start + 1, begin, tag] = False
            there[row, start + 1, begin, copy] = True
            there[row, start + 2 :, copy, :k] = True
            there[row, start + 2 :, copy, tag] = False
            there[row, start + 2 :, copy, copy] = True
        for start, end, label in wrong[row]:
            _forbid(there[row], scheme, start, end, label, inside.get((start, label), k), length)
    base = base.to(chain.potentials.device)
    rows = base[:, None, :, None].expand(-1, longest, -1, k)
    columns = base[:, None, None, :].expand(-1, longest, k + copies, -1)
    potentials = chain.potentials.gather(2, rows).gather(3, columns)
    return LinearChain(
        potentials.masked_fill(~there.to(potentials.device), -torch.inf), chain.lengths
    )


def _forbid(
    there: torch.Tensor,
    scheme: SpanScheme,
    start: int,
    end: int,
    label: str,
    copy: int,
    length: int,
) -> None:
    """Take the moves that end a wrong span out of a sentence's moves (n, K', K')."""
    begin, inside = scheme.tag("B", label), scheme.tag("I", label)
    if scheme.tag_format == "BIOES":
        if end - start == 1:
            there[start, :, scheme.tag("S", label)] = False
        else:
            before = begin if end - start == 2 else copy
            there[end - 1, before, scheme.tag("E", label)] = False
        return
    before = begin if end - start == 1 else copy
    if end == length:
        there[end - 1, :, before] = False
        return
    goes_on = there[end, before].clone()
    there[end, before] = False
    onward = [i for i in (inside, copy) if i < len(goes_on)]
    there[end, before, onward] = goes_on[onward]
