"""A BiLSTM with self-attention in parallel to its output (Li2019 sections 3.2, 4 and 5.4).

The section numbers are those of the first version of Li2019.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from spacy_psa.errors import SettingError, check_sizes
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.products import Precision, multipliers
from spacy_psa.ragged import mask, pad, unpad


class AttentionHeads(NamedTuple):
    """The attention weights of a layer of heads, as `inspect` of an encoder returns them.

    Attributes:
        attention: alpha^1 … alpha^m, (B, m, n, n).

    Examples:
        >>> encoder = SelfAttentiveBiLSTM(input_width=8, hidden=5)
        >>> (heads,) = encoder.inspect(torch.randn(7, 8), torch.tensor([4, 3]))
        >>> heads.attention.shape
        torch.Size([2, 5, 4, 4])
    """

    attention: Tensor


class SelfAttentiveBiLSTM(nn.Module):
    """Encodes tokens by a BiLSTM and attention over its states: (N, nI) -> (N, 4 * hidden).

        H = BiLSTM(x), of width d_h = 2 * hidden                        (Li2019 section 3.2)
        alpha^i = softmax(H Wq^i (H Wk^i)^T / sqrt(d_c))                (Li2019 section 4.1)
        C^i = alpha^i H Wv^i, of width d_c = d_h / m

    The output is H || C^1 || … || C^m, for a linear classifier.

    The attribute `zeroed` names the blocks of the output ("H", "C1", …, "Cm") that are replaced
    with zeros. It serves to test a trained model (Li2019 section 5.4.1) and is not saved with the
    weights.

    Args:
        hidden: units of each direction of the BiLSTM (Li2019: 100).
        layers: number of stacked layers of the BiLSTM (Li2019: 2).
        heads: m, the number of heads (Li2019: 5).
        separate: whether the two directions are separate stacks, see `BiLSTM` (Li2019 section
            3.2).
        input_dropout: dropout rate before the first layer of the BiLSTM. Li2019 drops "35% hidden
            features" and does not name the place. Here, as in the authors' code, these are the
            inputs and the states of the BiLSTM; the attention has no dropout.
        output_dropout: dropout rate after each layer of the BiLSTM (Li2019: 0.35, as above).

    Raises:
        InputError: for a size below 1, for a dropout rate that is not from 0 to 1, for an unknown
            precision, and if `heads` does not divide 2 * hidden.

    Examples:
        >>> encoder = SelfAttentiveBiLSTM(input_width=100, hidden=50)
        >>> x, lengths = torch.randn(7, 100), torch.tensor([4, 3])
        >>> encoder(x, lengths).shape
        torch.Size([7, 200])
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
        precision: Precision = "float32",
    ):
        super().__init__()
        check_sizes(hidden=hidden, heads=heads)
        d = 2 * hidden
        if d % heads:
            raise SettingError("heads", heads, f"it must divide 2 * hidden, {d}")
        self.lstm = BiLSTM(
            input_width,
            hidden,
            layers=layers,
            separate=separate,
            input_dropout=input_dropout,
            output_dropout=output_dropout,
            precision=precision,
        )
        self.precision: Precision = precision
        self.heads = heads
        # Each projection holds the matrices of all heads, one below the other.
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
        """Encode x (N, nI) of sentences of `lengths` (B,) -> (N, 4 * hidden)."""
        h = self.lstm(x, lengths)
        query, key, value, tokens = self._project(h, lengths)
        # This function needs no memory of n * n numbers, not even on a CPU.
        context = scaled_dot_product_attention(query, key, value, attn_mask=tokens)
        output = torch.cat([h, unpad(context.transpose(1, 2).flatten(2), lengths)], 1)
        for name in self.zeroed:
            output[:, self.blocks[name]] = 0
        return output

    def inspect(self, x: Tensor, lengths: Tensor) -> list[AttentionHeads]:
        """Compute the attention weights of the heads (Li2019 Fig. 2 and 3).

        Row j of a matrix holds the weights with which token j reads the others. The rows of padding
        have no meaning; the columns of padding are 0.
        """
        query, key, _, tokens = self._project(self.lstm(x, lengths), lengths)
        scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
        return [AttentionHeads(torch.softmax(scores.masked_fill(~tokens, -torch.inf), -1))]

    def _project(self, h: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Compute queries, keys and values (B, m, n, d_c), and which keys are real (B, 1, 1, n)."""
        query, key, value = (
            pad(projection(h), lengths).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for projection in multipliers(self.precision, h, self.query, self.key, self.value)
        )
        return query, key, value, mask(lengths, h.device)[:, None, None]
