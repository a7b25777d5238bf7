"""Additive self-attention over a flat ragged batch, compiled for the CPU.

The torch twin is `spacy_psa.modules.additive_attention`, which holds n·n·d activations at a
time. This kernel stores nothing of that size: one loop computes, uses and drops the d activations
of a pair, and the backward pass computes them again. With t = e^(k(A+C)) = e^(kA) e^(kC) and
r = 1/(1+t),

    tanh(A+C) = 1 - 2r  (k = 2)        sigmoid(A+C) = 1 - r  (k = 1)

So exponentials are computed once for each token, and the loop over d is a product and a reciprocal,
which the compiler turns into vector instructions. The constant 1 does not change the softmax over j
and is left out: f_ij = -k Σ_d w_d r_ijd + bias, df/dA_d = k² w_d r(1-r).
"""

from operator import attrgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from spacy_psa.kernels.compiled import compiled

Array = NDArray[Any]

SLOPES = {"tanh": 2.0, "sigmoid": 1.0}

# Without "ninf" and "nnan": r must be 0 where t overflows, and NaN must stay visible.
_compiled = compiled(error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz", "afn"})


@_compiled
def _row(offset: int, rows: int, signed: bool) -> int:
    """Return the row of the position table for i - j = offset, clipped at the ends."""
    if signed:
        r = rows // 2
        return min(max(offset, -r), r) + r
    return min(abs(offset), rows - 1)


@_compiled
def _forward(
    ea: Array,
    ec: Array,
    w: Array,
    table: Array,
    distance: Array,
    signed: bool,
    masked: bool,
    x: Array,
    offsets: Array,
    band: int,
    s: Array,
    kept: Array,
) -> None:
    """Fill s (N, d), which is zero before, and kept, one weight for each visited pair.

    If kept is empty, no weights are kept.
    """
    width, rows = ea.shape[1], table.shape[1]
    unit = ea.dtype.type(1)
    zero = ea.dtype.type(0)
    keep = len(kept) > 0
    scores = np.empty(2 * band + 1, ea.dtype)
    pair = 0
    for b in range(len(offsets) - 1):
        for i in range(offsets[b], offsets[b + 1]):
            lo = max(offsets[b], i - band)
            hi = min(offsets[b + 1], i + band + 1)
            if masked and hi - lo == 1:
                if keep:
                    kept[pair] = zero
                    pair += 1
                continue
            largest = ea.dtype.type(-np.inf)
            for j in range(lo, hi):
                if masked and j == i:
                    continue
                f = zero
                for d in range(width):
                    f += w[d] / (unit + ea[i, d] * ec[j, d])
                f += table[i, _row(i - j, rows, signed)] + distance[abs(i - j)]
                scores[j - lo] = f
                largest = max(largest, f)
            total = zero
            for j in range(lo, hi):
                if masked and j == i:
                    scores[j - lo] = zero
                else:
                    scores[j - lo] = np.exp(scores[j - lo] - largest)
                    total += scores[j - lo]
            for j in range(lo, hi):
                a = scores[j - lo] / total
                if keep:
                    kept[pair] = a
                    pair += 1
                for d in range(width):
                    s[i, d] += a * x[j, d]


@_compiled
def _backward(
    ea: Array,
    ec: Array,
    signed: bool,
    x: Array,
    offsets: Array,
    band: int,
    kept: Array,
    ds: Array,
    centre: Array,
    da: Array,
    dc: Array,
    dw: Array,
    dtable: Array,
    ddistance: Array,
    dx: Array,
) -> None:
    """Add up the gradients; da, dc and dw still lack the factors k² w, k² w and -k."""
    width, rows = ea.shape[1], dtable.shape[1]
    unit = ea.dtype.type(1)
    zero = ea.dtype.type(0)
    row_w = np.zeros(width, ea.dtype)  # for one i: a float32 sum over all pairs would drift
    pair = 0
    for b in range(len(offsets) - 1):
        for i in range(offsets[b], offsets[b + 1]):
            lo = max(offsets[b], i - band)
            hi = min(offsets[b + 1], i + band + 1)
            for j in range(lo, hi):
                a = kept[pair]
                pair += 1
                df = zero
                for d in range(width):
                    df += ds[i, d] * x[j, d]
                df = a * (df - centre[i])
                dtable[i, _row(i - j, rows, signed)] += df
                ddistance[abs(i - j)] += df
                for d in range(width):
                    dx[j, d] += a * ds[i, d]
                for d in range(width):
                    r = unit / (unit + ea[i, d] * ec[j, d])
                    u = df * r
                    v = u - u * r
                    row_w[d] += u
                    da[i, d] += v
                    dc[j, d] += v
            for d in range(width):
                dw[d] += row_w[d]
                row_w[d] = zero


# The largest |kA| and |kC| whose exponentials are taken, and the k|A+C| from which on tanh and
# sigmoid are constant up to rounding.
LIMITS = {torch.float32: (80.0, 20.0), torch.float64: (600.0, 40.0)}


def covers(a: Tensor, c: Tensor, activation: str) -> bool:
    """Return whether `attend` is exact for A and C (N, d); if not, its twin must be used.

    A number beyond the limit is cut there. This changes nothing where the other number is small,
    because the activation of the sum is constant. But if both are large, their sum may be small.
    """
    slope = SLOPES[activation]
    limit, constant = LIMITS[a.dtype][0] / slope, LIMITS[a.dtype][1] / slope
    with torch.no_grad():
        of_a, of_c = a.abs(), c.abs()
        if float(of_a.max()) <= limit and float(of_c.max()) <= limit:
            return True  # the usual case, decided quickly
        of_a, of_c = of_a.amax(0), of_c.amax(0)
        larger, smaller = torch.maximum(of_a, of_c), torch.minimum(of_a, of_c)
        return not bool(((larger > limit) & (smaller > limit - constant)).any())


class AdditiveAttention(torch.autograd.Function):
    """Additive attention as `attend` describes it, with gradients.

    The arguments of `apply` are the tensors of `attend`, the first row of each sentence and the end
    (`offsets`), the k of the activation (`slope`), `signed`, `masked` and `band`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        a: Tensor,
        c: Tensor,
        w: Tensor,
        table: Tensor,
        distance: Tensor,
        x: Tensor,
        offsets: NDArray[np.int64],
        slope: float,
        signed: bool,
        masked: bool,
        band: int,
    ) -> Tensor:
        kept = x.new_empty(_pairs(offsets, band))
        ea, ec = a * slope, c * slope
        s = _sums(ea, ec, w, table, distance, x, offsets, slope, signed, masked, band, kept)
        ctx.save_for_backward(ea, ec, w, x.contiguous(), s, kept)
        ctx.rest = offsets, slope, signed, band, table.shape, distance.shape
        return s

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ds: Tensor) -> tuple[Tensor | None, ...]:
        ea, ec, w, x, s, kept = ctx.saved_tensors
        offsets, slope, signed, band, table_shape, distance_shape = ctx.rest
        ds = ds.contiguous()
        centre = (ds * s).sum(1)  # Σ_j a_ij (ds_i·x_j), the softmax's own term
        da, dc, dx = torch.zeros_like(x), torch.zeros_like(x), torch.zeros_like(x)
        dtable = x.new_zeros(table_shape)
        dw = torch.zeros(w.shape, dtype=torch.float64)
        ddistance = torch.zeros(distance_shape, dtype=torch.float64)
        _backward(
            ea.numpy(), ec.numpy(), signed, x.numpy(), offsets, band, kept.numpy(), ds.numpy(),
            centre.numpy(), da.numpy(), dc.numpy(), dw.numpy(), dtable.numpy(),
            ddistance.numpy(), dx.numpy(),
        )  # fmt: skip
        factor = slope**2 * w
        grads = da.mul_(factor), dc.mul_(factor), (-slope * dw).to(w.dtype), dtable
        return *grads, ddistance.to(x.dtype), dx, None, None, None, None, None


def _sums(
    ea: Tensor,
    ec: Tensor,
    w: Tensor,
    table: Tensor,
    distance: Tensor,
    x: Tensor,
    offsets: NDArray[np.int64],
    slope: float,
    signed: bool,
    masked: bool,
    band: int,
    kept: Tensor,
) -> Tensor:
    """Compute s (N, d) from kA and kC, which become e^(kA) and e^(kC), and fill `kept`."""
    limit, _ = LIMITS[x.dtype]  # so that numbers stay above 0 and below infinity; see `covers`
    ea.clamp_(-limit, limit).exp_()
    ec.clamp_(-limit, limit).exp_()
    x = x.detach().contiguous()
    s = torch.zeros_like(x)
    _forward(
        ea.numpy(), ec.numpy(), (-slope * w).detach().numpy(),
        table.detach().contiguous().numpy(), distance.detach().contiguous().numpy(),
        signed, masked, x.numpy(), offsets, band, s.numpy(), kept.numpy(),
    )  # fmt: skip
    return s


def _pairs(offsets: NDArray[np.int64], band: int) -> int:
    """Count the pairs (i, j) of one sentence with |i-j| <= band."""
    n = np.diff(offsets)
    reach = np.minimum(band, n - 1)
    return int(np.sum(n + reach * (2 * n - 1 - reach)))


def attend(
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

    The arguments and the result are those of its twin in `modules.additive_attention`. All
    tensors must be on the CPU and have the same type, float32 or float64; `activation` is a key of
    `SLOPES`; `covers` must hold. If no gradient is recorded, a and c are overwritten.

    Time is N · min(n, 2 band + 1) · d. Memory is N · d, and in training one more number for each
    visited pair.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths.numpy())]).astype(np.int64)
    slope, band = SLOPES[activation], min(band, int(lengths.max()) - 1)
    tensors = a, c, w, table, distance, x
    if torch.is_grad_enabled() and any(map(attrgetter("requires_grad"), tensors)):
        result: Tensor = AdditiveAttention.apply(*tensors, offsets, slope, signed, masked, band)
        return result
    a, c, nothing = a.mul_(slope), c.mul_(slope), x.new_empty(0)
    return _sums(a, c, w, table, distance, x, offsets, slope, signed, masked, band, nothing)
