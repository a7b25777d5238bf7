"""The encoder of the chart parser: Model[List[Floats2d], List[Floats2d]]."""

from collections.abc import Sequence

from spacy_psa.architectures.encode import Encoder
from spacy_psa.bridge import torch_layer
from spacy_psa.errors import InputError
from spacy_psa.modules.factored_transformer import FactoredTransformer, check
from spacy_psa.modules.precision import Precision, check_precision


def factored_transformer_encoder(
    width: int = 1024,
    heads: int = 8,
    head_width: int = 64,
    layers: int = 8,
    feedforward: int = 2048,
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
) -> Encoder:
    """`FactoredTransformer.v1`: self-attention that keeps content and position apart (K).

    width: d, of the output; half of it is content, half position. Embeddings of another
    width than the content's are projected. heads, head_width, layers, feedforward: sizes.
    max_length: words with a position of their own; further ones share the last.
    factored: false for the plain encoder, over the sum of content and position.
    concat: the input is content beside position, and not their sum; null for what
    `factored` says. `factored = false` with `concat = true` is K's concatenative network,
    `factored = true` with `concat = false` its control (K section 3).
    position_only: layers, from the first, that attend by position alone (K section 3);
    needs factored = false and added inputs.
    boundaries: give START's and STOP's rows too, for `ChartParser.v1`.
    input_norm: LayerNorm of the input, the code's.
    disable_content, disable_position: layers, from 0, whose attention does without one
    part (K section 4.1). window: the largest distance that attention spans, null for any.
    relaxed: the first two and the last two tokens, START and STOP counted, attend and are
    attended without limit (K section 4.2). These four in a config hold in training too; on
    a trained parser see `spacy_psa.analysis.parser_ablation`.
    attention_dropout: on attention weights. relu_dropout, residual_dropout: on features,
    the same ones at all tokens of a sentence. `training.dropout` touches none of them.
    precision: of matrix products, "float32", or "bfloat16" on a GPU, or a CPU that has
    instructions for it (avx512_bf16, amx_bf16), in less time.

    Errors: InputError for a size below 1, odd halves, a layer that is not there, options
    that exclude each other, and another precision.
    """
    sizes = {
        "width": width,
        "heads": heads,
        "head_width": head_width,
        "layers": layers,
        "feedforward": feedforward,
        "max_length": max_length,
        "window": window,
    }
    for name, size in sizes.items():
        if size is not None and size < 1:
            raise InputError(f"FactoredTransformer.v1: {name} is {size}: take 1 or more")
    check_precision("FactoredTransformer.v1", precision)
    arguments = {
        "model_width": width,
        "heads": heads,
        "head_width": head_width,
        "layers": layers,
        "feedforward": feedforward,
        "max_length": max_length,
        "factored": factored,
        "concat": concat,
        "position_only": position_only,
        "boundaries": boundaries,
        "input_norm": input_norm,
        "disable_content": list(disable_content),
        "disable_position": list(disable_position),
        "window": window,
        "relaxed": relaxed,
        "attention_dropout": attention_dropout,
        "relu_dropout": relu_dropout,
        "residual_dropout": residual_dropout,
        "precision": precision,
    }
    check(
        (width, head_width, feedforward),
        layers,
        factored=factored,
        concat=concat,
        position_only=position_only,
        disabled=(*disable_content, *disable_position),
    )
    model = torch_layer("factored_transformer", FactoredTransformer, **arguments)
    model.set_dim("nO", width)
    model.attrs["boundaries"] = boundaries
    return model
