"""The parts of document memory other than matrix products, compiled for annotation on the CPU.

Their twins are `DocumentMemory.forward` and `walk` in `spacy_psa.modules.documents`.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_psa.kernels.compiled import compiled
from spacy_psa.kernels.gates import FAST, _sigmoid, _tanh

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_compiled = compiled(error_model="numpy", fastmath=FAST)
LANES = 8
"""Partial sums of a dot product, which LLVM keeps in one register."""


@_compiled
def _dot(a: Floats, b: Floats) -> Any:
    sums = np.zeros(LANES, dtype=np.float32)
    whole = len(a) - len(a) % LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            sums[lane] += a[start + lane] * b[start + lane]
    total = np.float32(0)
    for lane in range(LANES):
        total += sums[lane]
    for d in range(whole, len(a)):
        total += a[d] * b[d]
    return total


@_compiled
def _add(weight: Any, a: Floats, out: Floats) -> None:
    for d in range(len(out)):
        out[d] += weight * a[d]


@_compiled
def attend(
    query: Floats, key: Floats, value: Floats, others: Ints, even: bool, out: Floats
) -> None:
    """Sum the values of the other occurrences, by the weights of their keys.

    Args:
        query: (r, m) of some tokens.
        key: (R, m) of all tokens.
        value: (R, m) of all tokens.
        others: (r, k) rows of `key`, -1 in the last places of a row where there are fewer.
        even: whether all occurrences weigh alike.
        out: (r, m) the result.
    """
    scale = np.float32(1 / math.sqrt(query.shape[1]))
    scores = np.zeros(others.shape[1], dtype=np.float32)
    for row in range(len(query)):
        count, most = 0, -np.float32(np.inf)
        while count < others.shape[1] and others[row, count] >= 0:
            if not even:
                scores[count] = _dot(query[row], key[others[row, count]]) * scale
            most = max(most, scores[count])
            count += 1
        total = np.float32(0)
        for c in range(count):
            scores[c] = np.float32(math.exp(scores[c] - most))
            total += scores[c]
        out[row, :] = 0
        for c in range(count):
            _add(scores[c] / total, value[others[row, c]], out[row])
            scores[c] = 0


@_compiled
def mix(added: Floats, gate: Floats, rows: Ints, states: Floats) -> None:
    """Replace states by g ⊙ h + (1 - g) ⊙ a, where a is the tanh of `added`.

    Args:
        added: (r, d); overwritten.
        gate: (r, d) the inputs of the gates; overwritten.
        rows: (r,) the rows of `states` to replace.
        states: (N, d) h.
    """
    for i in range(len(rows)):
        a, g, h = added[i], gate[i], states[rows[i]]
        _tanh(a)
        _sigmoid(g)
        for d in range(len(h)):
            h[d] = a[d] + g[d] * (h[d] - a[d])


@compiled()
def walk(order: Ints, starts: Ints, nearest: Ints) -> None:
    """Walk to the left and to the right from each place of a word, the nearer one first.

    Args:
        order: (N,) the places, sorted by document and word; the places of a word ascend.
        starts: where each word of a document begins in `order`, and N at the end.
        nearest: (N, k) the result; places that are not filled stay as they are.
    """
    for group in range(len(starts) - 1):
        first, end = starts[group], starts[group + 1]
        for i in range(first, end):
            here = order[i]
            left, right = i - 1, i + 1
            for k in range(min(nearest.shape[1], end - first - 1)):
                if right >= end or (left >= first and here - order[left] <= order[right] - here):
                    nearest[here, k] = order[left]
                    left -= 1
                else:
                    nearest[here, k] = order[right]
                    right += 1
