"""Viterbi and forward-backward of linear chains over legal pairs of tags, as CUDA kernels.

CuPy, which spaCy needs on a GPU, compiles them at their first call and keeps the result on disk. A
thread block works on a sentence, and each of its threads on a tag. So the time grows with the
length of the longest sentence, and hardly with the number of sentences. In torch, each token of the
longest sentence needs a dozen launches.

The numbers of a chain are those of `kernels.pair_chain`: `flat`, (N, P) float32 or float64, holds
the log potentials of the P legal pairs at the N tokens of B sentences.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from spacy_psa.ragged import to_device

WARP = 32
MOST_THREADS = 512
MOST_TAGS = 3000
"""A block has memory of its own for so many tags; every GPU has 48 KiB for each block."""

SOURCE = r"""
#define NONE (-1.0 / 0.0)
typedef long long integer;

extern "C" __global__ void viterbi(
    const REAL* potentials, const integer* starts, const integer* previous, const integer* begins,
    int tags, integer pairs, double* scores, integer* path, int* back)
{
    extern __shared__ double shared[];
    double *best = shared, *step = shared + tags;
    integer first = starts[blockIdx.x], length = starts[blockIdx.x + 1] - first;
    for (int y = threadIdx.x; y < tags; y += blockDim.x)
        best[y] = potentials[first * pairs + begins[y]];
    __syncthreads();
    for (integer t = first + 1; t < first + length; ++t) {
        const REAL* row = potentials + t * pairs;
        for (int y = threadIdx.x; y < tags; y += blockDim.x) {
            double top = NONE;
            int where = 0;
            for (integer p = begins[y]; p < begins[y + 1]; ++p) {
                double score = best[previous[p]] + row[p];
                if (score > top) {
                    top = score;
                    where = previous[p];
                }
            }
            step[y] = top;
            back[t * tags + y] = where;
        }
        __syncthreads();
        double* other = best;
        best = step;
        step = other;
    }
    if (threadIdx.x == 0) {
        int last = 0;
        for (int y = 1; y < tags; ++y)
            if (best[y] > best[last]) last = y;
        scores[blockIdx.x] = best[last];
        if (best[last] > NONE)
            for (integer t = first + length - 1; t >= first; --t) {
                path[t] = last;
                if (t > first) last = back[t * tags + last];
            }
    }
}

// `shares` is (N, P), or null if only the log partition is asked for. `sums` is (N, tags).
extern "C" __global__ void forward_backward(
    const REAL* potentials, const integer* starts, const integer* previous, const integer* begins,
    const integer* following, const integer* ends,
    int tags, integer pairs, double* log_z, REAL* shares, double* sums)
{
    extern __shared__ double shared[];
    double *alpha = shared, *after = shared + tags, *total = shared + 2 * tags;
    integer first = starts[blockIdx.x], length = starts[blockIdx.x + 1] - first;
    for (int y = threadIdx.x; y < tags; y += blockDim.x)
        alpha[y] = potentials[first * pairs + begins[y]];
    __syncthreads();
    for (integer t = first + 1; t < first + length; ++t) {
        const REAL* row = potentials + t * pairs;
        for (int y = threadIdx.x; y < tags; y += blockDim.x) {
            double top = NONE, sum = 0.0;
            for (integer p = begins[y]; p < begins[y + 1]; ++p)
                top = fmax(top, alpha[previous[p]] + row[p]);
            for (integer p = begins[y]; p < begins[y + 1]; ++p) {
                double weight = top > NONE ? exp(alpha[previous[p]] + row[p] - top) : 0.0;
                if (shares) shares[t * pairs + p] = weight;
                sum += weight;
            }
            if (shares) sums[t * tags + y] = sum;
            after[y] = top > NONE ? top + log(sum) : NONE;
        }
        __syncthreads();
        double* other = alpha;
        alpha = after;
        after = other;
    }
    if (threadIdx.x == 0) {
        double top = NONE, sum = 0.0;
        for (int y = 0; y < tags; ++y) top = fmax(top, alpha[y]);
        if (top > NONE)
            for (int y = 0; y < tags; ++y) sum += exp(alpha[y] - top);
        *total = top > NONE ? top + log(sum) : NONE;
        log_z[blockIdx.x] = *total;
    }
    __syncthreads();
    if (!shares) return;
    bool possible = *total > NONE;
    double *marginal = after, *before = alpha;
    for (int y = threadIdx.x; y < tags; y += blockDim.x)
        marginal[y] = possible ? exp(alpha[y] - *total) : 0.0;
    __syncthreads();
    for (integer t = first + length - 1; t > first; --t) {
        REAL* row = shares + t * pairs;
        for (int y = threadIdx.x; y < tags; y += blockDim.x) {
            double sum = sums[t * tags + y], share = sum > 0.0 ? marginal[y] / sum : 0.0;
            for (integer p = begins[y]; p < begins[y + 1]; ++p) row[p] *= share;
        }
        __syncthreads();
        // Each thread adds up the pairs after its tag in their order, so no run differs.
        for (int y = threadIdx.x; y < tags; y += blockDim.x) {
            double sum = 0.0;
            for (integer p = ends[y]; p < ends[y + 1]; ++p) sum += row[following[p]];
            before[y] = sum;
        }
        __syncthreads();
        double* other = marginal;
        marginal = before;
        before = other;
    }
    for (int y = threadIdx.x; y < tags; y += blockDim.x)
        shares[first * pairs + begins[y]] = marginal[y];
}
"""
"""The kernels, for REAL = float or double."""


class PairIndex(NamedTuple):
    """The legal pairs of tags, as tensors on the GPU; see `pair_index`."""

    previous: Tensor
    """(P,) int64, the previous tag of each pair; the pairs are sorted by tag, then by this."""
    begins: Tensor
    """(K + 1,) int64; the pairs of tag y are those from `begins[y]` to `begins[y + 1]`."""
    following: Tensor
    """(P,) int64, the numbers of the pairs, sorted by previous tag, then by tag."""
    ends: Tensor
    """(K + 1,) int64; the pairs after tag y are those from `ends[y]` to `ends[y + 1]` of it."""


def pair_index(previous: Tensor, begins: Tensor, device: torch.device) -> PairIndex:
    """Make the index that the kernels need, on a device.

    `previous` and `begins` are as in `kernels.pair_chain`; K is at most `MOST_TAGS`.
    """
    order = torch.argsort(previous, stable=True)
    tags = torch.arange(len(begins))
    ends = torch.searchsorted(previous[order], tags)
    return PairIndex(*(to_device(x.contiguous(), device) for x in (previous, begins, order, ends)))


@cache
def all_pairs(tags: int, device: torch.device) -> PairIndex:
    """Make the index of a chain in which every tag may follow every tag."""
    previous = torch.arange(tags).repeat(tags)
    return pair_index(previous, torch.arange(0, tags * tags + 1, tags), device)


def viterbi(flat: Tensor, lengths: Tensor, index: PairIndex) -> tuple[Tensor, Tensor]:
    """Find the best score (B,) of each sentence, and its best tags (N,), as `kernels.pair_chain`.

    Args:
        flat: (N, P) contiguous, on a GPU.
        lengths: (B,) int64 on the CPU.
        index: the pairs, on the same GPU.
    """
    tags = len(index.begins) - 1
    scores = flat.new_empty(len(lengths), dtype=torch.float64)
    path = torch.zeros(len(flat), dtype=torch.int64, device=flat.device)
    back = torch.empty(len(flat), tags, dtype=torch.int32, device=flat.device)
    given = flat, _starts(lengths, flat.device), index.previous, index.begins
    sizes = np.int32(tags), np.int64(flat.shape[1])
    _launch("viterbi", (*given, *sizes, scores, path, back), len(lengths), tags)
    return scores, path


def log_partition(flat: Tensor, lengths: Tensor, index: PairIndex) -> Tensor:
    """Compute the log partition of each sentence, (B,) float64; see `viterbi`."""
    return _sums(flat, lengths, index, None)


def forward_backward(flat: Tensor, lengths: Tensor, index: PairIndex) -> tuple[Tensor, Tensor]:
    """Compute the log partition (B,) and its gradient (N, P), as `kernels.pair_chain`."""
    shares = torch.zeros_like(flat)
    return _sums(flat, lengths, index, shares), shares


def _sums(flat: Tensor, lengths: Tensor, index: PairIndex, shares: Tensor | None) -> Tensor:
    tags = len(index.begins) - 1
    log_z = flat.new_empty(len(lengths), dtype=torch.float64)
    sums = None if shares is None else flat.new_empty(len(flat), tags, dtype=torch.float64)
    given = flat, _starts(lengths, flat.device), *index
    sizes = np.int32(tags), np.int64(flat.shape[1])
    _launch("forward_backward", (*given, *sizes, log_z, shares, sums), len(lengths), tags)
    return log_z


def _starts(lengths: Tensor, device: torch.device) -> Tensor:
    """The first token of each sentence, and the end of the last: (B + 1,) int64."""
    return to_device(torch.nn.functional.pad(torch.cumsum(lengths, 0), (1, 0)), device)


def _launch(name: str, arguments: tuple[Any, ...], blocks: int, tags: int) -> None:
    """Run a kernel on torch's stream, with a block for each sentence."""
    import cupy

    if not blocks:
        return
    flat = arguments[0]
    kernel = _compiled("float" if flat.dtype == torch.float32 else "double").get_function(name)
    threads = min(MOST_THREADS, -(-tags // WARP) * WARP)
    stream = torch.cuda.current_stream(flat.device).cuda_stream
    with cupy.cuda.Device(flat.device.index), cupy.cuda.ExternalStream(stream):
        kernel((blocks,), (threads,), tuple(map(_passed, arguments)), shared_mem=_shared(tags))


def _shared(tags: int) -> int:
    """The bytes of shared memory of a block: two numbers for each tag, and one."""
    return 8 * (2 * tags + 1)


def _passed(argument: Any) -> Any:
    """An argument of a kernel: the address of a tensor, 0 for None, or a number."""
    if isinstance(argument, Tensor):
        return np.uint64(argument.data_ptr())
    return np.uint64(0) if argument is None else argument


@cache
def _compiled(real: str) -> Any:
    import cupy

    return cupy.RawModule(code=SOURCE, options=(f"-DREAL={real}", "--std=c++17"))
