"""Matrix products in int8, for annotation on a CPU.

Weights are rounded once to 8 bits, each row of a matrix (an output of the layer) with a
scale of its own; what is multiplied with them is rounded when it comes, each token with
a scale of its own ("dynamic quantisation"). Sums are taken in 32 bits, so nothing
overflows, and all else stays in float32. Processors with VNNI or AMX are four times as
fast in int8 as in float32.
"""

from functools import partial

import torch
from torch import Tensor, nn

from spacy_psa import kernels
from spacy_psa.errors import InputError
from spacy_psa.modules.distinct import Distinct
from spacy_psa.modules.recurrence import direction_weights, states


def to_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    """x (M, d) float32 -> q (M, d) int8 and scale (M,): x = q · scale, but for half a step.

    Rows of zeros have a scale of nearly 0."""
    x = x.contiguous()
    if x.device.type == "cpu" and kernels.available():
        from spacy_psa.kernels import int8

        q, scale = torch.empty_like(x, dtype=torch.int8), x.new_empty(len(x))
        int8.to_int8(x.numpy(), q.numpy(), scale.numpy())
        return q, scale
    largest = x.abs().amax(1).clamp(min=1e-12)
    return torch.round(x * (127 / largest)[:, None]).to(torch.int8), largest / 127


def add_product(x: Tensor, weight: Tensor, scale: Tensor, out: Tensor) -> Tensor:
    """out (M, k) += x (M, d) times the transpose of weight (k, d) int8 and its scale (k,)."""
    product, rows = _product(x, weight)
    if kernels.available():
        from spacy_psa.kernels import int8

        int8.add_scaled(product.numpy(), rows.numpy(), scale.numpy(), out.numpy())
        return out
    return out.addcmul_(product.float(), rows[:, None] * scale)


def affine(x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """x (M, d) times the transpose of weight (k, d) int8 and its scale (k,), plus bias (k,)."""
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
    """x rounded times the transpose of weight, (M, k) int32, and the scale of x's rows (M,)."""
    q, rows = to_int8(x)
    return torch._int_mm(q, weight.t()), rows


class Int8Linear(nn.Module):
    """A torch.nn.Linear with int8 weights."""

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
        """x (..., d) float32 -> (..., k). Nothing flows back."""
        rows = _on_cpu(x).flatten(0, -2)
        out = affine(rows, self.weight, self.scale, self.bias)
        return out.unflatten(0, x.shape[:-1])


class Int8LSTM(nn.Module):
    """A bidirectional torch.nn.LSTM of one layer with int8 weights, for packed rows."""

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
        """As `spacy_psa.modules.recurrence.Recurrence`, on x (N, I), or (2, N, I) where each
        direction reads an input of its own: (2, N, H).

        index: (2, N) the packed order of each direction. sizes: sentences at each step."""
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
    """Put int8 layers in the place of a module's nn.Linear and bidirectional nn.LSTM, at any
    depth. Embeddings, convolutions and single weights stay as they are."""
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
