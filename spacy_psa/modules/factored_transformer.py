"""The encoder of Kitaev2018: a Transformer that can keep content and position apart.

The numbers of sections in this file are those of Kitaev2018.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_psa.errors import InputError, SettingError, check_choice, check_sizes
from spacy_psa.modules.factored_layer import FactoredLayer
from spacy_psa.modules.products import Precision, products
from spacy_psa.modules.transformer import Bias
from spacy_psa.ragged import positions, with_boundaries


class FactoredTransformer(nn.Module):
    """Encodes words, START and STOP with learned positions by the layers of Kitaev2018.

    It takes (N, nI) and returns (N, d), or (N + 2B, d) with `boundaries`. Kitaev2018 describes the
    layers in section 2.2, the factored form in section 3 and the limits on attention in section 4.

    The module is one of four encoders, by the settings `factored` and `concat`. By default both
    are true, as in Kitaev2018's factored encoder. With both false it is the plain encoder. With
    `concat` alone it is the concatenative network; with `factored` alone it is the paper's
    control, weights in blocks over added inputs.

    The settings `disable_content`, `disable_position`, `window` and `relaxed` have no weights: they
    may be changed on a trained module, through its attributes.

    A config of version 1 calls `ffn_dim` `feedforward`.

    Args:
        input_width: nI, the width of the words' vectors. If it is not the width of the content,
            trained weights project the vectors (Kitaev2018 section 5.2).
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
        position_only: number of layers, from the first, whose queries and keys are made of the
            position embeddings alone (Kitaev2018 section 3: all 8). It needs added inputs and
            weights that are not factored.
        boundaries: whether to return n + 2 rows for a sentence of n words, START and STOP too.
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
        residual_dropout: rate of the `SentenceDropout` on what is added (Kitaev2018's code: 0.2).
        precision: "float32" or "bfloat16", see `products`.

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
        _check(
            {"width": width, "head_width": head_width, "ffn_dim": ffn_dim},
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
        return y.index_select(0, words.to(x.device))


def _check(
    widths: Mapping[str, int],
    layers: int,
    *,
    factored: bool,
    concat: bool,
    position_only: int,
    disabled: Sequence[int],
) -> None:
    """Raise InputError if the settings of a `FactoredTransformer` do not fit each other."""
    for setting, width in widths.items():
        if (factored or concat) and width % 2:
            advice = "it must be even, because content and position have a half each"
            raise SettingError(setting, width, advice)
    if position_only and (factored or concat):
        raise InputError("position_only needs factored = false, and concat = false or null")
    if disabled and not factored:
        raise InputError("disable_content and disable_position need factored = true")
    if position_only > layers:
        advice = f"it must be at most the number of layers, {layers}"
        raise SettingError("position_only", position_only, advice)
    if unknown := [layer for layer in disabled if not 0 <= layer < layers]:
        raise InputError(
            f"disable_content or disable_position has the layer {unknown[0]}: "
            f"the layers are 0 to {layers - 1}"
        )


def window_bias(x: Tensor, lengths: Tensor, window: int, relaxed: bool) -> Bias:
    """Make the bias for `attend` that limits attention to |i - j| <= window.

    This is the limit of Kitaev2018 section 4.2.

    Args:
        x: any tensor with the device and the type of the scores.
        lengths: (B,) int64, the tokens of each sentence, START and STOP counted.
        window: the largest distance, in tokens.
        relaxed: whether START, the first word, the last word and STOP attend to all tokens and
            are attended by all.

    Examples:
        >>> rows = window_bias(torch.zeros(1), torch.tensor([4]), window=1, relaxed=False)
        >>> rows(0, 4)[0, 0] == 0
        tensor([[ True,  True, False, False],
                [ True,  True,  True, False],
                [False,  True,  True,  True],
                [False, False,  True,  True]])
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
