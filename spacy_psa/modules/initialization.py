"""Random values at which weights start."""

from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from spacy_psa.errors import check_amounts

Layer = TypeVar("Layer", nn.Linear, nn.Conv1d)


def embedding(num_embeddings: int, width: int, init_std: float | None = None) -> nn.Embedding:
    """Make a table of vectors that start as `uniform` draws them."""
    table = nn.Embedding(num_embeddings, width)
    uniform(table.weight, init_std)
    return table


def uniform(vectors: Tensor, init_std: float | None = None) -> Tensor:
    """Fill vectors (M, width) from the uniform distribution around 0, and return them.

    Their standard deviation `init_std` is by default 1 / sqrt(width), which is U(-sqrt(3 / width),
    sqrt(3 / width)), the range of Glorot's rule for one row.
    """
    init_std = vectors.shape[1] ** -0.5 if init_std is None else init_std
    check_amounts(init_std=init_std)
    return nn.init.uniform_(vectors, -(3.0**0.5) * init_std, 3.0**0.5 * init_std)


def glorot(layer: Layer) -> Layer:
    """Draw the weights of a layer by Glorot's rule, set its biases to 0, and return it."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def glorot_all(module: nn.Module) -> None:
    """Initialize all parameters of a module as Wei2020 section 5.2 does.

    Matrices are drawn by Glorot's rule. So are weight vectors, as d × 1 matrices; their names end
    with "score". All other parameters become 0.
    """
    for name, parameter in module.named_parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
        elif parameter.dim() == 1 and name.endswith("score"):
            nn.init.xavier_uniform_(parameter.data[:, None])
        else:
            nn.init.zeros_(parameter)


class WithoutDraws(TorchFunctionMode):
    """A context in which weights get no random values, for modules whose weights are loaded next.

    Large models are loaded faster in it. Some modules draw until the numbers satisfy a condition,
    as `nn.init.trunc_normal_` does. So from the first time that code depends on a number of a
    tensor, all draws in the context are real.

    Examples:
        >>> state = torch.random.get_rng_state()
        >>> with WithoutDraws():
        ...     layer = nn.Linear(300, 200)
        >>> torch.equal(state, torch.random.get_rng_state())
        True
    """

    def __init__(self) -> None:
        super().__init__()
        self.draws = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _READS:
            self.draws = True
        if not self.draws:
            if func in _FILLS:
                return args[0] if args else (kwargs or {})["tensor"]
            if func is torch.randn:
                func = torch.empty
        return func(*args, **(kwargs or {}))


_FILLS = {nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_}
_FILLS |= {Tensor.uniform_, Tensor.normal_}
_READS = {Tensor.__bool__, Tensor.__float__, Tensor.__int__, Tensor.item, Tensor.tolist}
