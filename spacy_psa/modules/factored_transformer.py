"""The encoder of Kitaev2018: a Transformer that can keep content and position apart.

The numbers of sections in this file are those of Kitaev2018.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.errors import InputError, SettingError, check_choice, check_rates, check_sizes
from spacy_psa.modules.int8 import Int8Linear
from spacy_psa.modules.products import Precision, products
from spacy_psa.modules.transformer import Bias, attend, join_heads, split_heads
from spacy_psa.ragged import positions, to_device, with_boundaries


class SplitLinear(nn.Module):
    """Applies one linear layer to each half of a vector (section 3); both widths must be even.

        [W_c x_c + b_c ; W_p x_p + b_p] for x = [x_c ; x_p]

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

    If `factored`, content and position have separate weights, queries, keys and values, half of dk
    each, and the scores are q·k = q_c·k_c + q_p·k_p (section 3). `dropout` is the dropout rate on
    the attention weights.

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
            source: (N, d), the vectors from which queries and keys are computed; by default x.
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

    LN is over the whole width d, factored or not. The settings are those of `FactoredTransformer`.

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


class FactoredTransformer(nn.Module):
    """Encodes words, START and STOP with learned positions by the layers of Kitaev2018.

    It maps (N, nI) to (N, d), or to (N + 2B, d) with `boundaries`. Kitaev2018 describes the layers
    in section 2.2, the factored form in section 3 and the limits on attention in section 4. If nI
    is not the width of the content, trained weights project the vectors (section 5.2).

    The module is one of four encoders, by the settings `factored` and `concat`. By default both
    are true, as in Kitaev2018's factored encoder. With both false it is the plain encoder. With
    only `concat` it is the concatenative network; with only `factored` it is the paper's control,
    weights in blocks over added inputs.

    The settings `disable_content`, `disable_position`, `window` and `relaxed` have no weights: they
    may be changed on a trained module, through its attributes.

    Args:
        width: d, the width of the output (Kitaev2018's code: 1024). If the input is concatenated,
            half of it is content (Kitaev2018: 512) and half position.
        heads: number of heads (Kitaev2018: 8).
        head_width: dk, the width of a head (Kitaev2018's code: 64).
        layers: number of layers (Kitaev2018: 8, and 4 above ELMo).
        ffn_dim: width inside the feed-forward part (Kitaev2018's code: 2048).
        max_length: number of words that have a position of their own (Kitaev2018's code: 300,
            with START and STOP). Words beyond it share the last position: a longer sentence is
            encoded, but less well.
        factored: whether content and position have separate weights, half of each width
            (Kitaev2018 section 3).
        concat: whether the input of the layers is [content ; position] in equal halves, and not
            their sum; by default the value of `factored`.
        position_only: number of layers, from the first, whose queries and keys are computed only
            from the position embeddings (Kitaev2018 section 3: all 8). It needs added inputs and
            weights that are not factored.
        boundaries: whether to return n + 2 rows for a sentence of n words, with START and STOP.
        input_norm: whether a LayerNorm follows the input, as in Kitaev2018's code.
        disable_content: layers, counted from 0, in which content does not enter the scores of the
            attention (Kitaev2018 section 4.1). It needs factored weights.
        disable_position: layers in which position does not enter the scores; as above.
        window: the largest distance |i - j|, in tokens, over which attention goes, or None for no
            limit (Kitaev2018 section 4.2).
        relaxed: with a window, whether START, the first word, the last word and STOP attend and
            are attended without limit.
        attention_dropout: dropout rate on the attention weights (Kitaev2018's code: 0.2).
        relu_dropout: rate of the `SentenceDropout` after the relu (Kitaev2018's code: 0.1).
        residual_dropout: rate of the `SentenceDropout` on the outputs of the attention and of the
            feed-forward part (Kitaev2018's code: 0.2).

    Raises:
        InputError: for a size below 1, an unknown precision, a dropout rate out of its range,
            widths that do not divide into halves, layers that do not exist, and settings that
            exclude each other. `attention_dropout` is from 0 to 1; the other rates are below 1.

    Examples:
        >>> encoder = FactoredTransformer(
        ...     input_width=100, width=32, heads=2, head_width=8, layers=2, ffn_dim=64
        ... )
        >>> x, lengths = torch.randn(7, 100), torch.tensor([4, 3])
        >>> encoder(x, lengths).shape
        torch.Size([7, 32])
    """

    def __init__(
        self,
        input_width: int,
        width: int = 1024,
        heads: int = 8,
        head_width: int = 64,
        layers: int = 8,
        ffn_dim: int = 2048,
        max_length: int = 300,
        factored: bool = True,
        concat: bool | None = None,
        position_only: int = 0,
        boundaries: bool = False,
        input_norm: bool = True,
        disable_content: Sequence[int] = (),
        disable_position: Sequence[int] = (),
        window: int | None = None,
        relaxed: bool = True,
        attention_dropout: float = 0.2,
        relu_dropout: float = 0.1,
        residual_dropout: float = 0.2,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        check_sizes(width=width, heads=heads, head_width=head_width, layers=layers)
        check_sizes(ffn_dim=ffn_dim, max_length=max_length, window=window)
        check_sizes(least=0, position_only=position_only)
        check_choice("precision", precision, Precision)
        concat = factored if concat is None else concat
        for setting, size in (("width", width), ("head_width", head_width), ("ffn_dim", ffn_dim)):
            if (factored or concat) and size % 2:
                advice = "it must be even, because content and position have a half each"
                raise SettingError(setting, size, advice)
        if position_only and (factored or concat):
            raise InputError("position_only needs factored = false, and concat = false or null")
        if position_only > layers:
            advice = f"it must be at most the number of layers, {layers}"
            raise SettingError("position_only", position_only, advice)
        disabled = (*disable_content, *disable_position)
        if disabled and not factored:
            raise InputError("disable_content and disable_position need factored = true")
        if unknown := [layer for layer in disabled if not 0 <= layer < layers]:
            raise InputError(
                f"disable_content or disable_position has the layer {unknown[0]}: "
                f"the layers are 0 to {layers - 1}"
            )
        self.output_width = width
        self.factored, self.concat, self.boundaries = factored, concat, boundaries
        self.position_only = position_only
        self.disable_content, self.disable_position = set(disable_content), set(disable_position)
        self.window, self.relaxed = window, relaxed
        self.precision = precision
        part = width // 2 if concat else width
        self.project = None if input_width == part else nn.Linear(input_width, part, bias=False)
        self.ends = nn.Parameter(torch.randn(2, part))
        self.positions = nn.Parameter(torch.randn(max_length + 2, part))
        self.input_norm = nn.LayerNorm(width) if input_norm else None
        self.layers = nn.ModuleList(
            FactoredLayer(
                width, heads, head_width, ffn_dim, factored,
                attention_dropout=attention_dropout,
                relu_dropout=relu_dropout,
                residual_dropout=residual_dropout,
            )
            for _ in range(layers)
        )  # fmt: skip

    def out_lengths(self, lengths: Tensor) -> Tensor:
        """Count the rows of the output for sentences of `lengths` words: (B,) -> (B,)."""
        return lengths + 2 if self.boundaries else lengths

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Encode x (N, nI) of sentences of `lengths` (B,) -> (N, d).

        With `boundaries`, the result is (N + 2B, d).
        """
        with products(self.precision, x):
            return self._encode(x, lengths).to(x.dtype)

    def _encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        content = x if self.project is None else self.project(x)
        content = torch.cat([content, self.ends])[with_boundaries(lengths, x.device)]
        longer = lengths + 2
        place = positions(longer, x.device)[1]
        position = F.embedding(place.clamp(max=len(self.positions) - 1), self.positions)
        y = torch.cat([content, position], 1) if self.concat else content + position
        if self.input_norm is not None:
            y = self.input_norm(y)
        bias = None if self.window is None else window_bias(y, longer, self.window, self.relaxed)
        for number, layer in enumerate(self.layers):
            y = layer(
                y,
                longer,
                source=position if number < self.position_only else None,
                bias=bias,
                content=number not in self.disable_content,
                position=number not in self.disable_position,
            )
        if self.boundaries:
            return y
        # Counted on the CPU: on a GPU, it would wait to learn how many rows there are.
        words = (with_boundaries(lengths) < len(x)).nonzero()[:, 0]
        return y.index_select(0, to_device(words, x.device))


def window_bias(x: Tensor, lengths: Tensor, window: int, relaxed: bool) -> Bias:
    """Make the bias for `attend` that limits attention to |i - j| <= window (section 4.2).

    Args:
        x: any tensor with the device and the type of the scores.
        relaxed: as in `FactoredTransformer`.
    """
    place = torch.arange(int(lengths.max()), device=x.device)
    free = (place < 2) | (place >= to_device(lengths, x.device)[:, None] - 2)  # (B, n)
    least = torch.finfo(x.dtype).min

    def rows(start: int, stop: int) -> Tensor:
        allowed = ((place[start:stop, None] - place).abs() <= window)[None]
        if relaxed:
            allowed = allowed | free[:, start:stop, None] | free[:, None, :]
        return x.new_zeros(allowed.shape).masked_fill(~allowed, least)[:, None]

    return rows
