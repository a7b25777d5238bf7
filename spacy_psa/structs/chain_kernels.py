"""The kernels of a `LinearChain` over all pairs of tags, on tensors of the CPU or of a GPU.

`potentials` are (B, n, K, K) float32 or float64, and `lengths` (B,) int64 on the CPU, as those of a
`LinearChain`. No result has a gradient.
"""

import torch
from torch import Tensor

from spacy_psa.kernels import gpu_chain
from spacy_psa.ragged import pad, positions, unpad


def log_partition(potentials: Tensor, lengths: Tensor) -> Tensor:
    """Compute the log partition of each sentence, (B,) float64 in nats."""
    if potentials.is_cuda:
        return gpu_chain.log_partition(*_flat(potentials, lengths))
    from spacy_psa.kernels import chain as kernel

    values = potentials.detach().contiguous().numpy()
    return torch.from_numpy(kernel.log_partition(values, lengths.numpy()))


def forward_backward(potentials: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the log partition (B,) and its gradient, the expected counts (B, n, K, K)."""
    if potentials.is_cuda:
        log_z, counts = gpu_chain.forward_backward(*_flat(potentials, lengths))
        expected = torch.zeros_like(potentials)
        by_tag = counts.unflatten(1, potentials.shape[2:])
        expected[positions(lengths, potentials.device)] = by_tag.transpose(1, 2)
        return log_z, expected
    from spacy_psa.kernels import chain as kernel

    values = potentials.detach().contiguous().numpy()
    log_z, expected = kernel.forward_backward(values, lengths.numpy())
    return torch.from_numpy(log_z), torch.from_numpy(expected)


def viterbi(potentials: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Find the best scores (B,) float64 and tags (B, n) int64."""
    if potentials.is_cuda:
        scores, tags = gpu_chain.viterbi(*_flat(potentials, lengths))
        return scores, pad(tags, lengths)
    from spacy_psa.kernels import chain as kernel

    values = potentials.detach().contiguous().numpy()
    scores, tags = kernel.viterbi(values, lengths.numpy())
    return torch.from_numpy(scores), torch.from_numpy(tags)


def _flat(potentials: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, gpu_chain.PairIndex]:
    """Make the arguments of the kernels of a GPU: all pairs of tags, by tag, (N, K * K)."""
    rows = unpad(potentials.detach().transpose(2, 3).flatten(2), lengths)
    index = gpu_chain.all_pairs(potentials.shape[2], potentials.device)
    return rows.contiguous(), lengths, index
