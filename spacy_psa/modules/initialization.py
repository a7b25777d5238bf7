"""How weights start."""

from typing import TypeVar

from torch import Tensor, nn

Layer = TypeVar("Layer", nn.Linear, nn.Conv1d)


def embedding(num_embeddings: int, width: int, init_std: float | None = None) -> nn.Embedding:
    """A table of vectors that start as `uniform` draws them."""
    table = nn.Embedding(num_embeddings, width)
    uniform(table.weight, init_std)
    return table


def uniform(vectors: Tensor, init_std: float | None = None) -> Tensor:
    """Draw vectors, (M, width), from the uniform distribution around 0.

    init_std: its standard deviation; None for 1 / sqrt(width), which is
    U(-sqrt(3 / width), sqrt(3 / width)).
    """
    init_std = vectors.shape[1] ** -0.5 if init_std is None else init_std
    return nn.init.uniform_(vectors, -(3.0**0.5) * init_std, 3.0**0.5 * init_std)


def glorot(layer: Layer) -> Layer:
    """The layer, its weights drawn by Glorot's rule and its biases 0."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def glorot_all(module: nn.Module) -> None:
    """Glorot's rule for the matrices of a module and, as d × 1, for its weight vectors, whose
    names end with "score"; 0 for biases (Wei2020 section 5.2)."""
    for name, parameter in module.named_parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
        elif parameter.dim() == 1 and name.endswith("score"):
            nn.init.xavier_uniform_(parameter.data[:, None])
        else:
            nn.init.zeros_(parameter)
