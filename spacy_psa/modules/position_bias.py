"""The position bias Ψ of PSA, for any attention's scores (Wei2020 Eq. 4, 9-11; Wei2019 Eq. 8-12)."""

from typing import Literal

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_choice, check_sizes
from spacy_psa.modules.initialization import glorot_all
from spacy_psa.ragged import pad

Version = Literal["journal", "arxiv"]


class PositionBias(nn.Module):
    """Ψ_ij(x_i), what token i adds to its score of token j for where j stands.

        M_ij = -inf if i = j, else 0                                  (Wei2020 Eq. 9)
        G_ij = -(i-j)² / (2 ε²), ε = window / 2                       (Wei2020 Eq. 10)
        P_ij = x_i·R_c + (v·R_c + b0), c = min(|i-j|, window)         (Wei2020 Eq. 11)
        P_ij = x_i·R_c, c = clip(i-j, -window, window) + window       (Wei2019 Eq. 11-12)
    with R of window + 1 rows (journal) or 2 window + 1 (arxiv), make
        Ψ = M + α G + (1-α) P          (Wei2020 Eq. 4)
        Ψ = α1 M + α2 P + α3 G         (Wei2019 Eq. 8), α1 + α2 + α3 = 1

    What the papers leave open: α is the sigmoid of a trained number that starts
    at 0, so α starts at 0.5 and stays in (0, 1); (α1, α2, α3) is the softmax of
    three trained numbers that start at 0. M is a mask and is never scaled: the
    scaled one is the same mask, and NaN at α1 = 0. b0 cancels in the softmax
    and the row R_0 is not read under the mask; both are kept as written.

    width: d, of the x that Ψ reads.
    window: k, from which ε and the clipping distance follow.
    use_psi: False leaves out all of Ψ, the mask too (Wei2020 Table 6, row 1).
    use_mask, use_token_bias, use_gaussian: False leaves M, P or G out (Wei2020 Table
        7). The other terms keep their weights, so in the journal version G
        alone is still α G. A part that is left out has no parameters.

    InputError for a width or window below 1 and an unknown version.
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
        """The weights of G and of P in Ψ, two scalars in (0, 1)."""
        if self.signed:
            _, token, gaussian = torch.softmax(self.mix, 0)
            return gaussian, token
        alpha = torch.sigmoid(self.mix)
        return alpha, 1 - alpha

    def tables(self, x: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """x (N, d) -> weighted P by token and row (N, rows), weighted G by distance (longest,)."""
        table = x.new_zeros(len(x), 1)
        distance = x.new_zeros(longest)
        if self.token_bias:
            table = x @ self.distances.T
            if not self.signed:
                table = table + (self.distances @ self.global_score + self.global_bias)
            table = self.shares()[1] * table
        if self.gaussian:
            distance = self.shares()[0] * gaussian_bias(longest, self.window).to(distance)
        return table, distance

    def psi(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (N, d), lengths (B,) -> Ψ (B, n, n), n = max(lengths); -inf where M forbids."""
        n = int(lengths.max())
        table, distance = self.tables(x, n)
        offset = torch.arange(n, device=x.device)[:, None] - torch.arange(n, device=x.device)
        bias = look_up(pad(table, lengths), distance, offset, self.signed)
        return bias.masked_fill(offset == 0, -torch.inf) if self.masked else bias


def look_up(table: Tensor, distance: Tensor, offset: Tensor, signed: bool) -> Tensor:
    """P + G of `PositionBias.tables` for chosen rows i and columns j.

    table: (B, rows i, R). distance: by |i-j|. offset: i-j, (rows i, columns j).
    Returns (B, rows i, columns j).
    """
    last = table.shape[2] - 1
    if signed:
        row = offset.clamp(-(last // 2), last // 2) + last // 2
    else:
        row = offset.abs().clamp(max=last)
    return table.gather(2, row.expand(len(table), -1, -1)) + distance[offset.abs()]


def gaussian_bias(longest: int, window: int) -> Tensor:
    """G of Wei2020 Eq. 10 at distances 0 … longest - 1, float64."""
    return -(torch.arange(longest, dtype=torch.float64) ** 2) / (2 * (window / 2) ** 2)
