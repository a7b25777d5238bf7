"""The absolute position encoding of Vaswani et al. (2017)."""

import torch
from torch import Tensor, nn

from spacy_psa.ragged import positions, to_device


class SinusoidalPositions(nn.Module):
    """Adds the absolute position encoding of Vaswani et al. (2017), section 3.5: (N, d) -> (N, d).

        PE[p, 2i]   = sin(p / 10000^(2i/d))
        PE[p, 2i+1] = cos(p / 10000^(2i/d))

    The place p is counted from 0 in each sentence. An odd width ends with a sine. The module has
    no parameters.

    Examples:
        >>> encode = SinusoidalPositions(width=2)
        >>> encode(torch.zeros(3, 2), torch.tensor([2, 1]))
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403],
                [0.0000, 1.0000]])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Add the encoding to x (N, d) of sentences of `lengths` (B,) -> (N, d)."""
        encoding = sinusoids(torch.arange(int(lengths.max())), self.width)
        encoding = to_device(encoding, x.device).to(x.dtype)
        return x + encoding[positions(lengths, x.device)[1]]


def sinusoids(place: Tensor, width: int) -> Tensor:
    """Compute sines and cosines in turn for places (n,) int64, from 0 or negative: (n, width)."""
    # float64: at position 50,000 a float32 angle is off by 0.003.
    frequency = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = place.double()[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], 2).flatten(1)[:, :width]
