"""Matrix products in int8, for annotation on a CPU.

Weights are rounded to 8 bits once. Each row of a weight matrix, which makes one output of the
layer, has a scale of its own. The input of a product is rounded when it arrives, and each token
has a scale of its own ("dynamic quantisation"). Sums are computed in 32 bits, so they do not
overflow. Everything else stays in float32. Processors with VNNI or AMX are four times as fast in
int8 as in float32.
"""

from functools import partial

import torch
from torch import Tensor, nn

from spacy_psa import kernels
from spacy_psa.errors import InputError
from spacy_psa.modules.distinct import Distinct
from spacy_psa.modules.recurrence import direction_weights, states


def to_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Round each row of a matrix to int8 numbers with a scale.

    Args:
        x: (M, d) float32.

    Returns:
        q, (M, d) int8, and the scale of each row, (M,) float32. x differs from q · scale by at most
        half a scale. A row of zeros has a scale of nearly 0.

    Examples:
        >>> q, scale = to_int8(torch.tensor([[1.0, -0.25]]))
        >>> q, scale
        (tensor([[127, -32]], dtype=torch.int8), tensor([0.0079]))
    """
    x = x.contiguous()
    if x.device.type == "cpu" and kernels.available():
        from spacy_psa.kernels import int8

        q, scale = torch.empty_like(x, dtype=torch.int8), x.new_empty(len(x))
        int8.to_int8(x.numpy(), q.numpy(), scale.numpy())
        return q, scale
    largest = x.abs().amax(1).clamp(min=1e-12)
    return torch.round(x * (127 / largest)[:, None]).to(torch.int8), largest / 127


def add_product(x: Tensor, weight: Tensor, scale: Tensor, out: Tensor) -> Tensor:
    """Add the product of x and int8 weights to `out`.

    Args:
        x: (M, d) float32.
        weight: (k, d) int8, the weights, of which the transpose is multiplied.
        scale: (k,), the scale of each row of the weights.
        out: (M, k) float32, which is changed.

    Returns:
        `out`.

    Examples:
        >>> x, (weight, scale) = torch.ones(17, 8), to_int8(torch.ones(8, 8))
        >>> out = add_product(x, weight, scale, torch.ones(17, 8))
        >>> torch.allclose(out, torch.full((17, 8), 9.0))
        True
    """
    product, rows = _product(x, weight)
    if kernels.available():
        from spacy_psa.kernels import int8

        int8.add_scaled(product.numpy(), rows.numpy(), scale.numpy(), out.numpy())
        return out
    return out.addcmul_(product.float(), rows[:, None] * scale)


def affine(x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """Compute the product of x and int8 weights, plus a bias.

    Args:
        x: (M, d) float32.
        weight: (k, d) int8, the weights, of which the transpose is multiplied.
        scale: (k,), the scale of each row of the weights.
        bias: (k,) float32.

    Returns:
        (M, k) float32.

    Examples:
        >>> x, (weight, scale) = torch.ones(17, 8), to_int8(torch.ones(8, 8))
        >>> out = affine(x, weight, scale, torch.ones(8))
        >>> torch.allclose(out, torch.full((17, 8), 9.0))
        True
    """
    product, rows = _product(x, weight)
    if kernels.available():
        from spacy_psa.kernels import int8

        out = x.new_empty(product.shape)
        int8.scale_and_shift(
            product.numpy(), rows.numpy(), scale.numpy(), bias.numpy(), out.numpy()
        )
        return out
    return bias + product.float() * (rows[:, None] * scale)


def _product(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return rounded x times the transpose of weight, (M, k) int32, and the scales of x's rows."""
    q, rows = to_int8(x)
    return torch._int_mm(q, weight.t()), rows


class Int8Linear(nn.Module):
    """A torch.nn.Linear with int8 weights, for annotation on a CPU.

    Args:
        linear: the layer whose weights are rounded.

    Examples:
        >>> linear, x = nn.Linear(32, 8), torch.randn(20, 32)
        >>> torch.allclose(Int8Linear(linear)(x), linear(x), atol=0.05)
        True
    """

    weight: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, linear: nn.Linear):
        super().__init__()
        weight, scale = to_int8(linear.weight.detach())
        bias = torch.zeros(len(weight)) if linear.bias is None else linear.bias.detach().clone()
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        self.register_buffer("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to x (..., d) float32 -> (..., k). There are no gradients."""
        rows = _on_cpu(x).flatten(0, -2)
        out = affine(rows, self.weight, self.scale, self.bias)
        return out.unflatten(0, x.shape[:-1])


class Int8LSTM(nn.Module):
    """A bidirectional torch.nn.LSTM of one layer with int8 weights, for packed rows on a CPU.

    Args:
        lstm: the layer whose weights are rounded.

    Examples:
        >>> from spacy_psa.modules.recurrence import Packing
        >>> packing = Packing(torch.tensor([12, 8]))
        >>> lstm = Int8LSTM(nn.LSTM(32, 8, bidirectional=True))
        >>> order = torch.stack([packing.forward, packing.backward])
        >>> lstm.packed(torch.randn(20, 32), order, packing.sizes).shape
        torch.Size([2, 20, 8])
    """

    def __init__(self, lstm: nn.LSTM):
        super().__init__()
        self.hidden_size = lstm.hidden_size
        w_ih, w_hh, bias = direction_weights(lstm)
        for d in (0, 1):
            for name, weight in (("ih", w_ih[d]), ("hh", w_hh[d])):
                rounded, scale = to_int8(weight.detach())
                self.register_buffer(f"w_{name}_{d}", rounded)
                self.register_buffer(f"scale_{name}_{d}", scale)
            self.register_buffer(f"bias_{d}", bias[d].detach().clone())

    def packed(self, x: Tensor, index: Tensor, sizes: list[int]) -> Tensor:
        """Compute the states of both directions in packed order, as `Recurrence` does: (2, N, H).

        Args:
            x: (N, I), or (2, N, I) if each direction reads an input of its own.
            index: (2, N) int64, the packed order of each direction.
            sizes: sentences at each step, see `Packing`.
        """
        inputs = [x, x] if x.dim() == 2 else list(x)
        readers = [
            Distinct(_on_cpu(own)).reader(partial(self._enter, d)) for d, own in enumerate(inputs)
        ]

        def enter(d: int, rows: slice, out: Tensor) -> None:
            readers[d](index[d, rows], out)

        def again(d: int, h: Tensor, out: Tensor) -> None:
            add_product(h, *self._weights(f"hh_{d}"), out)

        return states(x.new_empty(index.shape[1], 0), self.hidden_size, sizes, enter, again)

    def _enter(self, d: int, x: Tensor) -> Tensor:
        return affine(x, *self._weights(f"ih_{d}"), self.get_buffer(f"bias_{d}"))

    def _weights(self, name: str) -> tuple[Tensor, Tensor]:
        return self.get_buffer(f"w_{name}"), self.get_buffer(f"scale_{name}")


def quantize(module: nn.Module) -> None:
    """Replace all nn.Linear and bidirectional nn.LSTM inside a module by int8 layers, at any depth.

    Embeddings, convolutions and single weights stay as they are.

    Examples:
        >>> module = nn.Sequential(nn.Linear(32, 8), nn.ReLU())
        >>> quantize(module)
        >>> type(module[0]).__name__
        'Int8Linear'
    """
    for name, child in module.named_children():
        if type(child) is nn.Linear:
            setattr(module, name, Int8Linear(child))
        elif type(child) is nn.LSTM:
            setattr(module, name, Int8LSTM(child))
        else:
            quantize(child)


def _on_cpu(x: Tensor) -> Tensor:
    if x.device.type != "cpu":
        raise InputError("weights in int8 are for the CPU: load the model without a GPU")
    return x.float()
