"""The encoder of Kitaev2018: a Transformer that may keep content and position apart (sections 2 and 3)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.errors import InputError, check_choice, check_sizes
from spacy_psa.modules.precision import Precision, products
from spacy_psa.modules.transformer import Bias, attend, join_heads, split_heads
from spacy_psa.ragged import positions, with_boundaries


class SplitLinear(nn.Module):
    """[W_c x_c + b_c ; W_p x_p + b_p] of x = [x_c ; x_p] in equal halves (Kitaev2018 section 3).

    input_width, output_width: of the whole vectors, even numbers.
    """

    def __init__(self, input_width: int, output_width: int, bias: bool = True) -> None:
        super().__init__()
        halves = (nn.Linear(input_width // 2, output_width // 2, bias=bias) for _ in range(2))
        self.content, self.position = halves

    def forward(self, x: Tensor) -> Tensor:
        """(N, input_width) -> (N, output_width)."""
        content, position = x.chunk(2, -1)
        return torch.cat([self.content(content), self.position(position)], -1)


class SentenceDropout(nn.Module):
    """Dropout of features: those of a sentence's tokens that go, go at all of them, as in
    Kitaev2018's code. rate: the share of features that go."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (N, d), lengths (B,) -> (N, d)."""
        if not self.training or not self.rate:
            return x
        kept = x.new_empty(len(lengths), x.shape[1]).bernoulli_(1.0 - self.rate)
        sentence, _ = positions(lengths, x.device)
        return x * (kept / (1.0 - self.rate)).index_select(0, sentence)


class FactoredAttention(nn.Module):
    """Multi-head attention of Kitaev2018: no biases, heads of a width of their own.

    width: d, of the input and the output. heads: of width `head_width`, dk.
    factored: content and position have weights, queries, keys and values apart, half of
    dk each, and q·k = q_c·k_c + q_p·k_p (Kitaev2018 section 3).
    dropout: on the attention weights.
    """

    def __init__(
        self, width: int, heads: int, head_width: int, factored: bool, dropout: float = 0.0
    ) -> None:
        super().__init__()
        linear = SplitLinear if factored else nn.Linear
        self.heads, self.head_width = heads, head_width
        self.factored = factored
        self.dropout = dropout
        inner = heads * head_width
        self.query_key = linear(width, 2 * inner, bias=False)
        self.value = linear(width, inner, bias=False)
        self.output = linear(inner, width, bias=False)
        # Glorot's rule over the three-way array of all heads, as in Kitaev2018's code: at first
        # every token attends to all others alike.
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
        """x (N, d), lengths (B,) -> (N, d).

        source: (N, d), what queries and keys are made of; x where None.
        bias: on the scores, see `attend`.
        content, position: false leaves q_c·k_c or q_p·k_p out, if the weights are factored.
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
        """(N, kinds · H · dk) -> (N, H, dk) for each kind; a factored head has its content
        half first."""
        if not self.factored:
            return projected.view(len(projected), kinds, self.heads, -1).unbind(1)
        parts = projected.view(len(projected), 2, kinds, self.heads, -1)
        return tuple(parts.permute(2, 0, 3, 1, 4).flatten(3).unbind())

    def _merge(self, joined: Tensor) -> Tensor:
        """(N, H · dk), where factored with all heads' content halves first."""
        if not self.factored:
            return joined
        return joined.view(len(joined), self.heads, 2, -1).transpose(1, 2).flatten(1)


class FactoredLayer(nn.Module):
    """y = LN(x + drop(attention(x))), LN(y + drop(W2 drop(relu(W1 y + b1)) + b2)) (Kitaev2018 section 2.2).

    LN over the whole width d, factored or not. relu_dropout, residual_dropout: see
    `SentenceDropout`; attention_dropout: on the attention weights.
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
        linear = SplitLinear if factored else nn.Linear
        self.attention = FactoredAttention(width, heads, head_width, factored, attention_dropout)
        self.attention_norm = nn.LayerNorm(width)
        self.inner = linear(width, ffn_dim)
        self.outer = linear(ffn_dim, width)
        self.feedforward_norm = nn.LayerNorm(width)
        self.relu_dropout = SentenceDropout(relu_dropout)
        self.residual_dropout = SentenceDropout(residual_dropout)

    def forward(self, x: Tensor, lengths: Tensor, **attention: object) -> Tensor:
        """x (N, d), lengths (B,) -> (N, d). attention: arguments of `FactoredAttention.forward`."""
        out = self.attention(x, lengths, **attention)
        x = self.attention_norm(x + self.residual_dropout(out, lengths))
        hidden = self.relu_dropout(torch.relu(self.inner(x)), lengths)
        return self.feedforward_norm(x + self.residual_dropout(self.outer(hidden), lengths))


class FactoredTransformer(nn.Module):
    """START, words and STOP with learned positions through layers of Kitaev2018 (sections 2.2 to 4).

    input_width: nI, of the words' vectors; where it is not that of the content, they are
    projected by trained weights (Kitaev2018 section 5.2).
    width: d, of the output; half of it is content, half position (Kitaev2018: 1024). heads,
    head_width: 8 of 64 in Kitaev2018. layers: 8 there.
    ffn_dim: the width inside the feed-forward part (Kitaev2018's code: 2048).
    max_length: words with a position of their own (Kitaev2018's code: 300, START and STOP counted).
    Those beyond share the last one, so a longer sentence is encoded, but worse.
    factored: content and position keep weights apart, half of each width (Kitaev2018 section 3);
    false is the plain encoder.
    concat: the input is [content ; position] in equal halves, and not their sum; by
    default what `factored` says. True without `factored` is Kitaev2018's concatenative network;
    false with it Kitaev2018's control, weights in blocks over added inputs.
    position_only: layers, from the first, whose queries and keys are of the position
    embeddings alone (Kitaev2018 section 3: all 8); for added inputs and plain weights.
    boundaries: give n + 2 rows a sentence, START's and STOP's too, and not n.
    input_norm: LayerNorm of the input, as in Kitaev2018's code.
    attention_dropout, relu_dropout, residual_dropout: Kitaev2018's code .2, .1 and .2.
    precision: see `products`.

    The rest may be set on a trained module too:
    disable_content, disable_position: layers, counted from 0, in which content or position
    gives nothing to the attention's scores (Kitaev2018 section 4.1); for factored weights.
    window: the largest distance |i - j| that attention spans, None for any (Kitaev2018 section 4.2).
    relaxed: START, the first and last word, and STOP attend and are attended without limit.

    InputError for sizes that do not fit each other and options that exclude each other.
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
        check_choice("precision", precision, Precision)
        concat = factored if concat is None else concat
        _check(
            (width, head_width, ffn_dim),
            layers,
            factored=factored,
            concat=concat,
            position_only=position_only,
            disabled=(*disable_content, *disable_position),
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
        """The rows of sentences of these many words."""
        return lengths + 2 if self.boundaries else lengths

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (N, nI), lengths (B,) -> (N, d), or (N + 2B, d) with `boundaries`."""
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
        return y[with_boundaries(lengths, x.device) < len(x)]


def _check(
    widths: Sequence[int],
    layers: int,
    *,
    factored: bool,
    concat: bool,
    position_only: int,
    disabled: Sequence[int],
) -> None:
    """InputError where the options of a `FactoredTransformer` do not fit each other."""
    if (factored or concat) and any(width % 2 for width in widths):
        raise InputError(f"content and position take equal halves: make {widths} even numbers")
    if position_only and (factored or concat):
        raise InputError("position_only needs factored = false, and concat not true")
    if disabled and not factored:
        raise InputError("disable_content and disable_position need factored = true")
    if unknown := [layer for layer in (*disabled, position_only - 1) if layer >= layers]:
        raise InputError(f"there is no layer {max(unknown)}, the last of {layers} is {layers - 1}")


def window_bias(x: Tensor, lengths: Tensor, window: int, relaxed: bool) -> Bias:
    """What keeps attention within |i - j| <= window, for `attend` (Kitaev2018 section 4.2).

    x: any tensor of the device and type of the scores. lengths: (B,), START and STOP counted.
    relaxed: START, the first word, the last word and STOP see all and are seen by all.
    """
    place = torch.arange(int(lengths.max()), device=x.device)
    free = (place < 2) | (place >= lengths.to(x.device)[:, None] - 2)  # (B, n)
    least = torch.finfo(x.dtype).min

    def rows(start: int, stop: int) -> Tensor:
        allowed = ((place[start:stop, None] - place).abs() <= window)[None]
        if relaxed:
            allowed = allowed | free[:, start:stop, None] | free[:, None, :]
        return x.new_zeros(allowed.shape).masked_fill(~allowed, least)[:, None]

    return rows
