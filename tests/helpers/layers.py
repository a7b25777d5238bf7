"""Small torch layers inside thinc models, and what their tests compare."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy
import torch
from thinc.api import SGD, Model, Optimizer
from torch import Tensor, nn

from spacy_psa.bridge.layers import torch_layer
from spacy_psa.bridge.shim import shim_of
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.psa import PSABiLSTM

Module = TypeVar("Module", bound=nn.Module)

WIDTH = 4
SMALL = {"hidden": 3, "input_dropout": 0.0, "output_dropout": 0.0}  # of a BiLSTM
DRY = {"lstm_input_dropout": 0.0, "lstm_output_dropout": 0.0, "attention_dropout": 0.0}
ENCODERS: dict[str, tuple[Callable[..., nn.Module], dict[str, Any]]] = {
    "bilstm": (BiLSTM, SMALL),
    "psa": (PSABiLSTM, {"hidden": 3, **DRY}),
    "nothing": (PSABiLSTM, {"bottom": "none", "middle": "none", "top": "none"}),
}


class Affine(nn.Module):
    """y = gain x + shift, gain of 0 dimensions; remembers nothing."""

    def __init__(self, input_width: int):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(2.0))
        self.shift = nn.Parameter(torch.arange(float(input_width)))
        self.output_width = input_width

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.gain * x + self.shift


def arrays(sizes: Iterable[int], width: int = WIDTH, seed: int = 0) -> list[numpy.ndarray]:
    """Random arrays, (size, width) each."""
    random = numpy.random.default_rng(seed)
    return [random.standard_normal((size, width), dtype="float32") for size in sizes]


def layer(make: Callable[..., nn.Module] = BiLSTM, seed: int = 0, **settings: Any) -> Model:
    """An initialized node whose parameters are all random; by default a small BiLSTM."""
    torch.manual_seed(seed)
    if make is BiLSTM:
        settings = {**SMALL, **settings}
    model = torch_layer("layer", make, settings).initialize(X=arrays([2]))
    for parameter in module_of(model).parameters():
        nn.init.normal_(parameter)
    return model


def bare_layer() -> Model:
    """The node that `layer()` gives, before it is initialized."""
    return torch_layer("layer", BiLSTM, dict(SMALL))


def module_of(model: Model) -> nn.Module:
    """The torch module of a node."""
    return shim_of(model).module


def weights_of(model: Model) -> list[numpy.ndarray]:
    """Copies of the weights of a node's module."""
    return [p.detach().numpy().copy() for p in module_of(model).parameters()]


def torch_modules(model: Model) -> list[nn.Module]:
    """The torch modules of a whole model."""
    return [shim.module for node in model.walk() for shim in node.shims]


def modules_of(model: Model, kind: type[Module]) -> list[Module]:
    """The torch modules of a kind within those of a whole model, in order."""
    inner = (each for module in torch_modules(model) for each in module.modules())
    return [each for each in inner if isinstance(each, kind)]


def torch_weights(model: Model) -> list[Tensor]:
    """Copies of all torch weights of a whole model."""
    return [p.detach().clone() for module in torch_modules(model) for p in module.parameters()]


def node_of(model: Model, name: str) -> Model:
    """The only node of a model with this name."""
    (found,) = (node for node in model.walk() if node.name == name)
    return found


def learns_everywhere(model: Model, X: Any) -> bool:
    """Whether an update by random gradients changes every torch weight of a whole model.

    b0 of Ψ (Wei2020) is left out: it cancels in the softmax, so its gradient is a rounding error,
    which is 0 on some processors.
    """
    model.begin_update(X)  # meets the words
    before = torch_weights(model)
    Y, _ = model(X, is_train=True)
    rng = numpy.random.default_rng(0)
    step(
        model,
        X,
        SGD(0.1, grad_clip=0.0, L2=0.0),
        [rng.normal(size=y.shape).astype("float32") for y in Y],
    )
    names = [name for module in torch_modules(model) for name, _ in module.named_parameters()]
    pairs = zip(names, before, torch_weights(model), strict=True)
    return not any(torch.equal(a, b) for name, a, b in pairs if not name.endswith("global_bias"))


def same(left: Iterable[Any], right: Iterable[Any]) -> bool:
    """Whether arrays are equal, one by one."""
    return all(map(numpy.array_equal, left, right))


def assert_close(left: Iterable[Any], right: Iterable[Any], atol: float = 1e-6) -> None:
    """Assert that arrays are as good as equal, one by one."""
    for a, b in zip(left, right, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-5, atol=atol)


def step(model: Model, X: Any, optimizer: Optimizer, dY: Any = None) -> None:
    """One update that follows the gradient dY, or the output itself (a quadratic)."""
    Y, backprop = model.begin_update(X)
    backprop(Y if dY is None else dY)
    model.finish_update(optimizer)
