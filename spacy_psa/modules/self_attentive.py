"""A BiLSTM with parallel self-attention beside it.

Li2019, in its first version, sections 3.2, 4 and 5.4.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from spacy_psa.errors import SettingError
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.ragged import mask, pad, unpad


class AttentionHeads(NamedTuple):
    """What a `SelfAttentiveBiLSTM` attends to in a batch."""

    attention: Tensor  # alpha^1 … alpha^m, (B, m, n, n)


class SelfAttentiveBiLSTM(nn.Module):
    """(N, nI) -> (N, 4 * hidden): H || C^1 || … || C^m for a linear classifier.

        H = BiLSTM(x), of width d_h = 2 * hidden                      (Li2019 section 3.2)
        alpha^i = softmax(H Wq^i (H Wk^i)^T / sqrt(d_c))              (Li2019 section 4.1)
        C^i = alpha^i H Wv^i, of width d_c = d_h / m

    input_width: nI. heads: m.
    hidden, layers, separate, input_dropout, output_dropout: see `BiLSTM`. Li2019 drops
    "35% hidden features" and does not say where; here it is the BiLSTM's inputs and
    states, none of the attention, as in the authors' code.

    `zeroed` names the blocks of the output ("H", "C1", …, "Cm") that are replaced with
    zeros: for tests of a trained model (Li2019 section 5.4.1), and no part of its weights.

    Errors: InputError where `heads` does not divide 2 * hidden.
    """

    def __init__(
        self,
        input_width: int,
        hidden: int = 100,
        layers: int = 2,
        heads: int = 5,
        separate: bool = True,
        input_dropout: float = 0.35,
        output_dropout: float = 0.35,
    ):
        super().__init__()
        d = 2 * hidden
        if heads < 1 or d % heads:
            raise SettingError("heads", heads, f"take a number that divides 2 * hidden, {d}")
        self.lstm = BiLSTM(
            input_width,
            hidden,
            layers=layers,
            separate=separate,
            input_dropout=input_dropout,
            output_dropout=output_dropout,
        )
        self.heads = heads
        # The matrices of the heads lie one below the other.
        self.query, self.key, self.value = (nn.Linear(d, d, bias=False) for _ in range(3))
        for projection in (self.query, self.key, self.value):
            for head in projection.weight.data.chunk(heads):
                nn.init.xavier_uniform_(head)
        self.output_width = 2 * d
        self.blocks = {"H": slice(0, d)}
        for i in range(heads):
            self.blocks[f"C{i + 1}"] = slice(d + i * d // heads, d + (i + 1) * d // heads)
        self.zeroed: frozenset[str] = frozenset()

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        h = self.lstm(x, lengths)
        query, key, value, tokens = self._project(h, lengths)
        # Without n * n memory, also on a CPU.
        context = scaled_dot_product_attention(query, key, value, attn_mask=tokens)
        output = torch.cat([h, unpad(context.transpose(1, 2).flatten(2), lengths)], 1)
        for name in self.zeroed:
            output[:, self.blocks[name]] = 0
        return output

    def inspect(self, x: Tensor, lengths: Tensor) -> list[AttentionHeads]:
        """The weights of the heads (Li2019 Fig 2, 3). Row j is where token j looks; the rows
        of padding hold nothing of meaning, its columns are 0."""
        query, key, _, tokens = self._project(self.lstm(x, lengths), lengths)
        scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
        return [AttentionHeads(torch.softmax(scores.masked_fill(~tokens, -torch.inf), -1))]

    def _project(self, h: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, keys and values (B, m, n, d_c), and which keys there are, (B, 1, 1, n)."""
        padded = pad(h, lengths)
        query, key, value = (
            projection(padded).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        return query, key, value, mask(lengths, h.device)[:, None, None]
