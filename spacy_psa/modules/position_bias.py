"""The position bias Ψ of position-aware self-attention (Wei2020, Wei2019)."""

from typing import Literal

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_choice, check_sizes
from spacy_psa.modules.additive_attention import look_up
from spacy_psa.modules.initialization import glorot_all
from spacy_psa.ragged import pad

Version = Literal["journal", "arxiv"]


class PositionBias(nn.Module):
    """The bias Ψ_ij(x_i) that token i adds to its score of token j because of the place of j.

        M_ij = -inf if i = j, else 0                                    (Wei2020 Eq. 9)
        G_ij = -(i-j)² / (2 ε²), ε = window / 2                         (Wei2020 Eq. 10)
        P_ij = x_i·R_c + (v·R_c + b0), c = min(|i-j|, window)           (Wei2020 Eq. 11)
        P_ij = x_i·R_c, c = clip(i-j, -window, window) + window         (Wei2019 Eq. 11-12)

    R has window + 1 rows in the journal version and 2 window + 1 rows in the arXiv version. The
    three parts make

        Ψ = M + α G + (1-α) P                                           (Wei2020 Eq. 4)
        Ψ = α1 M + α2 P + α3 G, α1 + α2 + α3 = 1                        (Wei2019 Eq. 8)

    The papers leave some points open. Here α is the sigmoid of a trained number that starts at 0,
    so α starts at 0.5 and stays in (0, 1); (α1, α2, α3) is the softmax of three trained numbers
    that start at 0. M is a mask and is never scaled: the scaled mask would be the same mask, and
    NaN at α1 = 0. The number b0 cancels in the softmax, and the row R_0 is not read under the
    mask; the module keeps both because the equation has them.

    Args:
        width: d, the width of the x that Ψ reads.
        window: k, in tokens, which sets ε and the distance at which P is clipped (Wei2020: 10).
        version: "journal" for the Ψ of Wei2020, "arxiv" for that of Wei2019. Weights trained with
            one version cannot be used with the other.
        use_psi: False leaves out all of Ψ, including the mask (Wei2020 Table 6, row 1).
        use_mask: False leaves the mask M out of Ψ (Wei2020 Table 7).
        use_token_bias: False leaves the token-specific bias P out of Ψ (Wei2020 Table 7).
        use_gaussian: False leaves the Gaussian bias G out of Ψ (Wei2020 Table 7). The other parts
            keep their weights, so without P there is still α G in the journal version. A part that
            is left out has no parameters.

    Raises:
        InputError: for a width or window below 1 and an unknown version.

    Examples:
        >>> bias = PositionBias(width=4, window=2, use_token_bias=False)
        >>> bias.psi(torch.randn(3, 4), torch.tensor([3]))
        tensor([[[   -inf, -0.2500, -1.0000],
                 [-0.2500,    -inf, -0.2500],
                 [-1.0000, -0.2500,    -inf]]], grad_fn=<MaskedFillBackward0>)
    """

    def __init__(
        self,
        width: int,
        *,
        window: int = 10,
        version: Version = "journal",
        use_psi: bool = True,
        use_mask: bool = True,
        use_token_bias: bool = True,
        use_gaussian: bool = True,
    ) -> None:
        super().__init__()
        check_sizes(width=width, window=window)
        check_choice("version", version, Version)
        self.window = window
        self.masked = use_psi and use_mask
        self.token_bias = use_psi and use_token_bias
        self.gaussian = use_psi and use_gaussian
        self.signed = version == "arxiv"
        if self.token_bias:
            rows = 2 * window + 1 if self.signed else window + 1
            self.distances = nn.Parameter(torch.empty(rows, width))
            if not self.signed:
                self.global_score = nn.Parameter(torch.empty(width))
                self.global_bias = nn.Parameter(torch.zeros(()))
        if self.token_bias or self.gaussian:
            self.mix = nn.Parameter(torch.zeros(3 if self.signed else ()))
        glorot_all(self)

    def shares(self) -> tuple[Tensor, Tensor]:
        """Compute the weights of G and of P in Ψ, two scalars in (0, 1)."""
        if self.signed:
            _, token, gaussian = torch.softmax(self.mix, 0)
            return gaussian, token
        alpha = torch.sigmoid(self.mix)
        return alpha, 1 - alpha

    def tables(self, x: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Compute the parts of Ψ without storing a number for each pair of tokens.

        Returns:
            The weighted P by token and row of R, (N, rows), and the weighted G by distance,
            (longest,).
        """
        table, distance = x.new_zeros(len(x), 1), x.new_zeros(longest)
        if not (self.token_bias or self.gaussian):
            return table, distance
        of_distance, of_table = self.shares()
        if self.token_bias:
            table = x @ self.distances.T
            if not self.signed:
                table = table + (self.distances @ self.global_score + self.global_bias)
            table = of_table * table
        if self.gaussian:  # in float64, as squares of large distances are not exact in float32
            places = torch.arange(longest, dtype=torch.float64, device=x.device)
            g = -(places**2) / (2 * (self.window / 2) ** 2)
            distance = of_distance * g.to(distance)
        return table, distance

    def psi(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Compute Ψ for all pairs of tokens: x (N, d) of sentences of `lengths` (B,) -> (B, n, n).

        n is max(lengths). An entry is -inf where the mask M forbids the pair.
        """
        n = int(lengths.max())
        table, distance = self.tables(x, n)
        offset = torch.arange(n, device=x.device)[:, None] - torch.arange(n, device=x.device)
        bias = look_up(pad(table, lengths), distance, offset, self.signed)
        return bias.masked_fill(offset == 0, -torch.inf) if self.masked else bias
