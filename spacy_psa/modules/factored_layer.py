"""The layers of Kitaev2018: attention and feed-forward parts that keep content and position apart.

The numbers of sections in this file are those of Kitaev2018.
"""

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_rates
from spacy_psa.modules.int8 import Int8Linear
from spacy_psa.modules.transformer import Bias, attend, join_heads, split_heads
from spacy_psa.ragged import positions


class SplitLinear(nn.Module):
    """Applies one linear layer to each half of a vector (Kitaev2018 section 3).

        [W_c x_c + b_c ; W_p x_p + b_p] for x = [x_c ; x_p]

    Args:
        input_width: width of the whole input, an even number.
        output_width: width of the whole output, an even number.
        bias: whether the layers have b_c and b_p.

    Examples:
        >>> layer = SplitLinear(input_width=8, output_width=6)
        >>> layer(torch.randn(5, 8)).shape
        torch.Size([5, 6])
    """

    def __init__(self, input_width: int, output_width: int, bias: bool = True) -> None:
        super().__init__()
        halves = (nn.Linear(input_width // 2, output_width // 2, bias=bias) for _ in range(2))
        self.content: nn.Module
        self.position: nn.Module
        self.content, self.position = halves

    def forward(self, x: Tensor) -> Tensor:
        """Map x (N, input_width) -> (N, output_width)."""
        content, position = x.chunk(2, -1)
        if isinstance(self.content, Int8Linear) and isinstance(self.position, Int8Linear):
            width = self.content.out_features
            out = x.new_empty(len(x), 2 * width, dtype=torch.float32)
            self.content.write(content, out[:, :width])
            self.position.write(position, out[:, width:])
            return out
        return torch.cat([self.content(content), self.position(position)], -1)


class SentenceDropout(nn.Module):
    """Drops features, the same ones at all tokens of a sentence, as Kitaev2018's code does.

    Args:
        rate: the share of features that are dropped, from 0 to less than 1.

    Raises:
        InputError: if `rate` is out of this range.

    Examples:
        >>> dropped = SentenceDropout(rate=0.5)(torch.ones(5, 100), torch.tensor([2, 3]))
        >>> torch.equal(dropped[0], dropped[1]), torch.equal(dropped[1], dropped[2])
        (True, False)
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        check_rates(below_one=True, rate=rate)
        self.rate = rate

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Drop features of x (N, d) of sentences of `lengths` (B,) -> (N, d)."""
        if not self.training or not self.rate:
            return x
        kept = x.new_empty(len(lengths), x.shape[1]).bernoulli_(1.0 - self.rate)
        sentence, _ = positions(lengths, x.device)
        return x * (kept / (1.0 - self.rate)).index_select(0, sentence)


class FactoredAttention(nn.Module):
    """Multi-head attention of Kitaev2018, without biases and with a head width of its own.

    If factored, content and position have separate weights, queries, keys and values, half of dk
    each, and the scores are q·k = q_c·k_c + q_p·k_p (Kitaev2018 section 3).

    Args:
        width: d, the width of the input and of the output.
        heads: number of heads (Kitaev2018: 8).
        head_width: dk, the width of a head (Kitaev2018's code: 64).
        factored: whether content and position are kept apart.
        dropout: dropout rate on the attention weights.

    Raises:
        InputError: if `dropout` is not from 0 to 1.

    Examples:
        >>> attention = FactoredAttention(width=16, heads=2, head_width=4, factored=True)
        >>> attention(torch.randn(7, 16), torch.tensor([4, 3])).shape
        torch.Size([7, 16])
    """

    def __init__(
        self, width: int, heads: int, head_width: int, factored: bool, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_rates(dropout=dropout)
        linear = SplitLinear if factored else nn.Linear
        self.heads, self.head_width = heads, head_width
        self.factored = factored
        self.dropout = dropout
        inner = heads * head_width
        self.query_key = linear(width, 2 * inner, bias=False)
        self.value = linear(width, inner, bias=False)
        self.output = linear(inner, width, bias=False)
        # Glorot's rule for the three-way array of all heads, as in Kitaev2018's code. At the start,
        # every token attends to all others almost equally.
        parts = 2 if factored else 1
        scale = (2 * parts / (head_width * (width / parts + heads))) ** 0.5
        for weights in (*self.query_key.parameters(), *self.value.parameters()):
            nn.init.normal_(weights, std=scale)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor,
        *,
        source: Tensor | None = None,
        bias: Bias | None = None,
        content: bool = True,
        position: bool = True,
    ) -> Tensor:
        """Attend within sentences -> (N, d).

        Args:
            x: (N, d), the token vectors; the values are made of them.
            lengths: (B,) int64, the tokens of each sentence.
            source: (N, d), the vectors of which queries and keys are made; by default x.
            bias: a bias on the scores, see `attend`.
            content: False leaves q_c·k_c out of the scores, if the weights are factored.
            position: False leaves q_p·k_p out of the scores, if the weights are factored.
        """
        query, key = self._split(self.query_key(x if source is None else source), 2)
        (value,) = self._split(self.value(x), 1)
        for part, kept in enumerate((content, position)):
            if not kept:
                half = self.head_width // 2
                query = query.clone()
                query[:, :, part * half : (part + 1) * half] = 0.0
        q, k, v = (
            split_heads(each.flatten(1), lengths, self.heads) for each in (query, key, value)
        )
        out = attend(
            q, k, v, lengths,
            scale=self.head_width**-0.5,
            dropout=self.dropout if self.training else 0.0,
            bias=bias,
        )  # fmt: skip
        return self.output(self._merge(join_heads(out, lengths)))

    def _split(self, projected: Tensor, kinds: int) -> tuple[Tensor, ...]:
        """Split (N, kinds · H · dk) into (N, H, dk) for each kind.

        In a factored head, the content half comes first.
        """
        if not self.factored:
            return projected.view(len(projected), kinds, self.heads, -1).unbind(1)
        parts = projected.view(len(projected), 2, kinds, self.heads, -1)
        return tuple(parts.permute(2, 0, 3, 1, 4).flatten(3).unbind())

    def _merge(self, joined: Tensor) -> Tensor:
        """Arrange (N, H · dk) for the output layer; if factored, content comes first."""
        if not self.factored:
            return joined
        return joined.view(len(joined), self.heads, 2, -1).transpose(1, 2).flatten(1)


class FactoredLayer(nn.Module):
    """Transforms token vectors by one layer of Kitaev2018 (section 2.2): (N, d) -> (N, d).

        y = LN(x + drop(attention(x)))
        LN(y + drop(W2 drop(relu(W1 y + b1)) + b2))

    LN is over the whole width d, factored or not.

    Args:
        width: d, the width of the input and of the output.
        heads: number of heads.
        head_width: dk, the width of a head.
        ffn_dim: width inside the feed-forward part.
        factored: whether content and position are kept apart.
        attention_dropout: dropout rate on the attention weights.
        relu_dropout: rate of the `SentenceDropout` after the relu.
        residual_dropout: rate of the `SentenceDropout` on the outputs of the attention and of W2.

    Raises:
        InputError: if `attention_dropout` is not from 0 to 1, or another rate not below 1.

    Examples:
        >>> layer = FactoredLayer(width=16, heads=2, head_width=4, ffn_dim=32, factored=True)
        >>> layer(torch.randn(7, 16), torch.tensor([4, 3])).shape
        torch.Size([7, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        head_width: int,
        ffn_dim: int,
        factored: bool,
        *,
        attention_dropout: float = 0.0,
        relu_dropout: float = 0.0,
        residual_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_rates(attention_dropout=attention_dropout)
        check_rates(below_one=True, relu_dropout=relu_dropout, residual_dropout=residual_dropout)
        linear = SplitLinear if factored else nn.Linear
        self.attention = FactoredAttention(width, heads, head_width, factored, attention_dropout)
        self.attention_norm = nn.LayerNorm(width)
        self.inner = linear(width, ffn_dim)
        self.outer = linear(ffn_dim, width)
        self.feedforward_norm = nn.LayerNorm(width)
        self.relu_dropout = SentenceDropout(relu_dropout)
        self.residual_dropout = SentenceDropout(residual_dropout)

    def forward(self, x: Tensor, lengths: Tensor, **attention: object) -> Tensor:
        """Transform x (N, d) of sentences of `lengths` (B,) -> (N, d).

        `attention` holds further arguments of `FactoredAttention.forward`.
        """
        out = self.attention(x, lengths, **attention)
        x = self.attention_norm(x + self.residual_dropout(out, lengths))
        hidden = self.relu_dropout(torch.relu(self.inner(x)), lengths)
        return self.feedforward_norm(x + self.residual_dropout(self.outer(hidden), lengths))
