"""Additive attention with a bias for positions, over a flat ragged batch, in plain torch.

It is for GPUs and for all else that its compiled twin in `kernels.attention` does not cover.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from spacy_psa.ragged import mask, pad, unpad

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid}

# Size of the largest tensor in `additive_attention`, on a CPU and on a GPU, which needs more work
# at a time. About four tensors of this size exist at once.
CHUNK_BYTES = {"cpu": 1 << 26, "cuda": 1 << 29}


def additive_attention(
    a: Tensor,
    c: Tensor,
    w: Tensor,
    table: Tensor,
    distance: Tensor,
    x: Tensor,
    lengths: Tensor,
    *,
    activation: str,
    signed: bool,
    masked: bool,
    band: int,
) -> Tensor:
    """Compute s_i = Σ_j softmax_j(w·σ(A_i + C_j) + T[i, row(i-j)] + g[|i-j|]) x_j.

    It works on some rows i at a time, so that its memory stays near 4 · CHUNK_BYTES. In training it
    computes the activations of each chunk once more in the backward pass, for the same reason.

    Args:
        a: A, (N, d).
        c: C, (N, d).
        w: (d,).
        table: T, (N, rows). row(i-j) is min(|i-j|, rows - 1); if `signed`, it is i-j clipped to
            ±r and shifted by r, with rows = 2r + 1.
        distance: g, of n = max(lengths) or more numbers.
        activation: σ, a key of `ACTIVATIONS`.
        signed: whether T has a row for each signed offset.
        masked: whether to leave out j = i.
        band: the largest |i-j| that is needed. Some pairs that are farther apart may be counted.

    Returns:
        s, (N, d).
    """
    chunks = attention_chunks(
        a, c, w, table, distance, lengths,
        activation=activation, signed=signed, masked=masked, band=band, values=pad(x, lengths),
    )  # fmt: skip
    return unpad(torch.cat([s for s, _ in chunks], 1), lengths)


def attention_chunks(
    a: Tensor,
    c: Tensor,
    w: Tensor,
    table: Tensor,
    distance: Tensor,
    lengths: Tensor,
    *,
    activation: str,
    signed: bool,
    masked: bool,
    band: int,
    values: Tensor | None = None,
) -> Iterator[Any]:
    """Yield weighted values (B, rows, d) or None, and weights (B, rows, cols), by ranges of i."""
    a, c, table = pad(a, lengths), pad(c, lengths), pad(table, lengths)
    valid = mask(lengths, a.device)
    n = a.shape[1]

    def chunk(start: int, stop: int, *tensors: Tensor) -> tuple[Tensor | None, Tensor]:
        a, c, w, table, distance, *values = tensors
        low, high = max(0, start - band), min(n, stop + band)
        i = torch.arange(start, stop, device=a.device)[:, None]
        j = torch.arange(low, high, device=a.device)
        z = a[:, start:stop, None] + c[:, None, low:high]
        scores = ACTIVATIONS[activation](z) @ w
        scores = scores + look_up(table[:, start:stop], distance, i - j, signed)
        allowed = valid[:, start:stop, None] & valid[:, None, low:high]
        if masked:
            allowed = allowed & (i != j)
        # Not -inf but the least number: a row without allowed pairs gets the gradient 0, not NaN.
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        attention = torch.softmax(scores, 2).masked_fill(~allowed, 0)
        return (attention @ values[0][:, low:high] if values else None), attention

    tensors = (a, c, w, table, distance) + (() if values is None else (values,))
    row_bytes = len(a) * min(n, 3 * band) * a.shape[2] * a.element_size()
    step = max(1, min(band, CHUNK_BYTES["cuda" if a.is_cuda else "cpu"] // row_bytes))
    for start in range(0, n, step):
        if step < n and torch.is_grad_enabled():
            yield checkpoint(
                chunk, start, min(n, start + step), *tensors,
                use_reentrant=False, preserve_rng_state=False,
            )  # fmt: skip
        else:
            yield chunk(start, min(n, start + step), *tensors)


def look_up(table: Tensor, distance: Tensor, offset: Tensor, signed: bool) -> Tensor:
    """Read T[i, row(i-j)] + g[|i-j|] for some rows i and columns j: (B, rows i, columns j).

    Args:
        table: (B, rows i, R); this and g are as in `additive_attention`.
        offset: (rows i, columns j) int64, i - j.
    """
    last = table.shape[2] - 1
    if signed:
        row = offset.clamp(-(last // 2), last // 2) + last // 2
    else:
        row = offset.abs().clamp(max=last)
    return table.gather(2, row.expand(len(table), -1, -1)) + distance[offset.abs()]


def reach(share: float, spread: float, window: int, longest: int, dtype: torch.dtype) -> int:
    """Compute the distance up to which pairs must be visited if the Gaussian bias is on.

    The nearest neighbour of a token is at distance 1 or 0. So the weight of a pair at distance D
    is at most exp(α (G(D) - G(1)) + spread) times the weight of the nearest pair. The result is
    the least D for which n such weights together stay below a tolerance of 1e-12 in float32, whose
    own precision is 6e-8, or 1e-20 in float64. As G(D) - G(1) = (1 - D²) / (2 ε²), this is the
    least D with

        α (D² - 1) / (2 ε²) >= spread + ln(n / tolerance)

    Time and memory of the attention are then linear in n.

    Args:
        share: α, the weight of G.
        spread: a bound on the difference between two scores of one row without G: 2 Σ|w| for tanh,
            plus the range of P.
        window: k, in tokens; ε = window / 2.
        longest: n, the length of the longest sentence.
    """
    tolerance = 1e-20 if dtype == torch.float64 else 1e-12
    if not share > 0 or not math.isfinite(spread):
        return longest
    needed = (spread + math.log(longest / tolerance)) / share
    return min(longest, math.ceil(math.sqrt(1 + 2 * (window / 2) ** 2 * needed)))
