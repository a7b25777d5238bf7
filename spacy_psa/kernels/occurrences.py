"""The nearest other places of each word, compiled for the CPU.

Its twin is `walk` in `spacy_psa.modules.documents`.
"""

import numpy as np
from numpy.typing import NDArray

from spacy_psa.kernels.compiled import compiled

Ints = NDArray[np.int64]


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
