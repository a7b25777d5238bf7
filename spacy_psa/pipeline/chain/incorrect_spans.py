"""Leaves the analyses that have a span known to be wrong out of a chain."""

import torch

from spacy_psa.pipeline.chain.span_tags import Spans, SpanScheme
from spacy_psa.structs.chain import LinearChain


def without_spans(chain: LinearChain, scheme: SpanScheme, wrong: list[Spans]) -> LinearChain:
    """Leave out the analyses that have one of the wrong spans.

    The log partition sums over the remaining analyses exactly, and gradients flow to the
    potentials of the given chain.

    The sequences of the result are over more than K tags. Whether a span that ends at a token is
    wrong depends on where it began. So the I tag of a label gets a copy for each start of a wrong
    span with that label. A span that begins there walks through the copy, with the potentials of
    I. The transitions out of the copy that would end the span at a wrong place are excluded.
    Nothing is subtracted, so no digits are lost, however probable the wrong spans were.

    Args:
        chain: a distribution over the K tags of B sentences, given everything else that is known.
        scheme: the meaning of the tags.
        wrong: for each sentence, spans (start, end, label), which may overlap and share ends.

    Raises:
        ValueError: if a span is not within its sentence.

    Examples:
        >>> scheme = SpanScheme(["PER"], "BIO")
        >>> transitions, start, end = map(torch.from_numpy, scheme.legal())
        >>> chain = LinearChain.from_emissions(torch.zeros(1, 2, 3), torch.tensor([2]))
        >>> chain = chain.constrain(transitions=transitions, start=start, end=end)
        >>> chain.log_partition.exp()  # the analyses of two tokens
        tensor([5.])
        >>> without_spans(chain, scheme, [[(0, 2, "PER")]]).log_partition.exp()
        tensor([4.])
    """
    batch, longest, k, _ = chain.potentials.shape
    for row, length in enumerate(chain.lengths.tolist()):
        for start, end, label in wrong[row]:
            if not 0 <= start < end <= length:
                raise ValueError(
                    f"{(start, end, label)} is not a span of a sentence of {length} tokens"
                )
    starts = [sorted({(s, label) for s, e, label in spans if e - s > 1}) for spans in wrong]
    copies = max(map(len, starts))
    base = torch.arange(k + copies).repeat(batch, 1)  # the tag that gives each one its potentials
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
    """Exclude the transitions that end a wrong span.

    Args:
        there: (n, K', K') bool, the transitions of a sentence that are possible; changed in place.
        scheme: the meaning of the tags.
        start: the first token of the span.
        end: the token after its last one.
        label: its label.
        copy: the copy of the I tag for spans that begin at `start`.
        length: the number of tokens of the sentence.
    """
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
