"""The position encoding of Vaswani et al. (2017), section 3.5."""

import torch
from torch import Tensor, nn

from spacy_psa.ragged import positions


class SinusoidalPositions(nn.Module):
    """Adds the absolute position encoding of Vaswani et al. (2017), section 3.5.

    PE[p, 2i] = sin(p / 10000^(2i/d)), PE[p, 2i+1] = cos of the same, p counted
    from 0 in each sentence. An odd width ends with a sine. No parameters.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (N, d), lengths (B,) -> (N, d)."""
        encoding = sinusoids(torch.arange(int(lengths.max())), self.width)
        return x + encoding.to(x)[positions(lengths, x.device)[1]]


def sinusoids(place: Tensor, width: int) -> Tensor:
    """place (n,), which may be negative -> sines and cosines in turn, (n, width) float64."""
    # float64: at position 50,000 a float32 angle is off by 0.003.
    frequency = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = place.double()[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], 2).flatten(1)[:, :width]
