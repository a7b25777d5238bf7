"""Matrix products in int8, for annotation on a CPU.

Weights are rounded to 8 bits once. Each row of a weight matrix, which makes one output of the
layer, has a scale of its own. The input of a product is rounded when it arrives, and each token
has a scale of its own ("dynamic quantisation"). Sums are computed in 32 bits, so they do not
overflow. Everything else stays in float32. Processors with VNNI or AMX are four times as fast in
int8 as in float32.
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from spacy_psa import kernels
from spacy_psa.errors import InputError
from spacy_psa.modules.idcnn import DilatedConvolution
from spacy_psa.modules.lstm import direction_weights, states
from spacy_psa.modules.products import Distinct

BLOCK_NUMBERS = 2**18
LEAST_WORK = 100
# With fewer rows, the call of a packed product costs more than it saves.
LEAST_ROWS = 64
# A small product of packed weights is at most a few times as slow as one of floats.
TOO_SLOW = 30

Rounding = Callable[[Tensor], tuple[Tensor, Tensor]]


class Int8Product:
    """Multiplies rows by the transpose of an int8 weight matrix, by oneDNN.

    Many rows are multiplied by a copy of the weights in the order that oneDNN prefers. The copy is
    made when it is first needed, and is not saved. With torch's plain product, each call would
    bring the weights into that order.

    Examples:
        >>> product = Int8Product()
        >>> rows, weight = (torch.ones(n, 8, dtype=torch.int8) for n in (2, 3))
        >>> product(rows, weight)
        tensor([[8, 8, 8],
                [8, 8, 8]], dtype=torch.int32)
    """

    def __init__(self) -> None:
        self._packed: tuple[tuple[int, int], Tensor] | None = None

    def places(self, rows: int) -> int:
        """Return the number of rows that a matrix should have to hold `rows` rows.

        oneDNN prepares a product for each number of rows, which is slower than the product itself.
        So the number is rounded up; the further rows may hold any numbers.
        """
        if rows < LEAST_ROWS or not packs():
            return rows
        return -(-rows // LEAST_ROWS) * LEAST_ROWS

    def __call__(self, rows: Tensor, weight: Tensor) -> Tensor:
        """Multiply rows (M, d) int8 by the transpose of weight (k, d) int8 -> (M, k).

        The sums have 32 bits. They are returned as int32 or, of many rows, as float32.
        """
        if len(rows) < LEAST_ROWS or not packs():
            return torch._int_mm(rows, weight.t())
        state = (weight.data_ptr(), 0 if weight.is_inference() else weight._version)
        if self._packed is None or self._packed[0] != state:
            self._packed = state, _pack(weight)
        return _multiply_packed(rows, self._packed[1], len(weight))

    def __getstate__(self) -> dict[str, Any]:
        return {"_packed": None}


@functools.cache
def packs() -> bool:
    """Return whether this torch multiplies well by packed weights on this processor.

    The operators are not documented, and the types of their arguments differ between versions. On
    some virtual machines oneDNN has no fast product of packed weights, and uses one that is far
    slower than that of floats. On processors with avx2 and without VNNI its sums of two products
    have 16 bits, so that large ones are wrong.
    """
    rows = torch.full((LEAST_ROWS, 64), -127, dtype=torch.int8)
    rows[1::2] = 127
    weight = torch.full((64, 64), 127, dtype=torch.int8)
    weight[1::2] = -127
    try:
        packed = _pack(weight)
        sums = _multiply_packed(rows, packed, len(weight))
    except (AttributeError, RuntimeError, TypeError):
        return False
    if not torch.equal(sums, rows.float() @ weight.float().t()):
        return False
    floats = rows.float(), weight.float().t()
    of_floats = _seconds(lambda: torch.mm(*floats))
    return _seconds(lambda: _multiply_packed(rows, packed, len(weight))) < TOO_SLOW * of_floats


def _seconds(product: Callable[[], Tensor]) -> float:
    """The least time of some calls, the first of which may prepare the product."""

    def time_once() -> float:
        started = time.perf_counter()
        product()
        return time.perf_counter() - started

    return min(time_once() for _ in range(4))


def _pack(weight: Tensor) -> Tensor:
    return torch.ops.onednn.qlinear_prepack(weight, None)


def _multiply_packed(rows: Tensor, packed: Tensor, outputs: int) -> Tensor:
    ones, zeros = _scales(outputs)
    return torch.ops.onednn.qlinear_pointwise(
        rows, 1.0, 0, packed, ones, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )


@functools.lru_cache(maxsize=64)
def _scales(outputs: int) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False):
        return torch.ones(outputs), torch.zeros(outputs, dtype=torch.int64)


def to_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Round each row of a matrix (M, d) float32 to int8 numbers with a scale.

    Returns:
        q, (M, d) int8, and the scale of each row, (M,) float32. x differs from q · scale by at most
        half a scale. A row of zeros has a scale of nearly 0.
    """
    q, scale = torch.empty_like(x, dtype=torch.int8), x.new_empty(len(x))
    _round_rows(x, q, scale)
    return q, scale


def _round_rows(x: Tensor, q: Tensor, scale: Tensor) -> None:
    """Round x (M, d) to the first rows of q (M or more, d), with `scale` (M,)."""
    if x.device.type == "cpu" and kernels.available():
        from spacy_psa.kernels import int8

        x = x if x.stride(1) == 1 else x.contiguous()
        int8.to_int8(_flat(x).numpy(), x.stride(0), q.numpy(), scale.numpy())
        return
    largest = x.abs().amax(1).clamp(min=1e-12)
    q[: len(x)] = torch.round(x * (127 / largest)[:, None])
    torch.div(largest, 127, out=scale)


def _flat(rows: Tensor) -> Tensor:
    """View the memory of rows, which may be parts of wider rows, without a copy."""
    size = (len(rows) - 1) * rows.stride(0) + rows.shape[1] if len(rows) else 0
    return rows.as_strided((size,), (1,))


def _multiply(x: Tensor, weight: Tensor, product: Int8Product) -> tuple[Tensor, Tensor]:
    """Return rounded x (M, d) times the transpose of weight (k, d), and the scales of x's rows."""
    q = x.new_empty(product.places(len(x)), x.shape[1], dtype=torch.int8)
    scale = x.new_empty(len(x))
    _round_rows(x, q, scale)
    return product(q, weight)[: len(x)], scale


def add_product(
    x: Tensor, weight: Tensor, scale: Tensor, product: Int8Product, out: Tensor
) -> None:
    """Add the product of x and int8 weights to `out`; the arguments are those of `affine`."""
    sums, rows = _multiply(x, weight, product)
    if kernels.available():
        from spacy_psa.kernels import int8

        int8.add_scaled(sums.numpy(), rows.numpy(), scale.numpy(), out.numpy())
    else:
        out.addcmul_(sums.float(), rows[:, None] * scale)


def affine(
    x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor, product: Int8Product, out: Tensor
) -> Tensor:
    """Compute the product of x and int8 weights, plus a bias, and return `out`.

    It works on some rows at a time, so that its numbers stay in the processor's cache.

    Args:
        x: (M, d) float32.
        weight: (k, d) int8, the weights, of which the transpose is multiplied.
        scale: (k,), the scale of each row of the weights.
        bias: (k,) float32.
        out: (M, k) float32, which is filled. Its rows may be parts of wider rows.
    """
    block = _block_rows(len(weight))
    for start in range(0, len(x), block):
        sums, rows = _multiply(x[start : start + block], weight, product)
        part = out[start : start + block]
        if kernels.available():
            from spacy_psa.kernels import int8

            int8.scale_and_shift(
                sums.numpy(), rows.numpy(), scale.numpy(), bias.numpy(),
                _flat(part).numpy(), out.stride(0),
            )  # fmt: skip
        else:
            torch.addcmul(bias, sums.float(), rows[:, None] * scale, out=part)
    return out


def _block_rows(outputs: int) -> int:
    """Return the number of rows of which a product with so many columns stays in the cache."""
    return max(1, BLOCK_NUMBERS // outputs // LEAST_ROWS) * LEAST_ROWS


class Int8Linear(nn.Module):
    """A torch.nn.Linear with int8 weights, for annotation on a CPU.

    Args:
        rounding: makes int8 weights and their scales of a matrix.

    Examples:
        >>> linear, x = nn.Linear(32, 8), torch.randn(20, 32)
        >>> torch.allclose(Int8Linear(linear)(x), linear(x), atol=0.05)
        True
    """

    weight: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, linear: nn.Linear, rounding: Rounding = to_int8):
        super().__init__()
        bias = None if linear.bias is None else linear.bias.detach()
        self._round(linear.weight.detach(), bias, rounding)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to x (..., d) float32 -> (..., k). There are no gradients."""
        rows = x.flatten(0, -2)
        out = x.new_empty(len(rows), self.out_features, dtype=torch.float32)
        return self.write(rows, out).unflatten(0, x.shape[:-1])

    def write(self, x: Tensor, out: Tensor) -> Tensor:
        """Apply the layer to x (M, d), write the result to `out` (M, k) float32 and return it."""
        return affine(_on_cpu(x), self.weight, self.scale, self.bias, self.product, out)

    def _round(self, matrix: Tensor, bias: Tensor | None, rounding: Rounding) -> None:
        weight, scale = rounding(matrix)
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        self.register_buffer("bias", torch.zeros(len(weight)) if bias is None else bias.clone())
        self.out_features, self.in_features = weight.shape
        self.product = Int8Product()


class Int8Convolution(Int8Linear):
    """A `DilatedConvolution` with int8 weights; its arguments are those of `Int8Linear`.

    Examples:
        >>> from spacy_psa.modules.idcnn import neighbours
        >>> convolution = DilatedConvolution(32, filters=8, kernel_size=3, dilation=1)
        >>> _ = nn.init.normal_(convolution.weight), nn.init.zeros_(convolution.bias)
        >>> near = neighbours(torch.tensor([4, 3]), kernel_size=3, dilation=1)
        >>> Int8Convolution(convolution)(torch.randn(7, 32), near).shape
        torch.Size([7, 8])
    """

    def __init__(self, convolution: DilatedConvolution, rounding: Rounding = to_int8):
        nn.Module.__init__(self)
        self.kernel_size, self.dilation = convolution.kernel_size, convolution.dilation
        self._round(convolution.matrix().detach(), convolution.bias.detach(), rounding)

    def forward(self, x: Tensor, near: Tensor) -> Tensor:  # type: ignore[override]
        """Convolve x (N, nI), with the result of `neighbours` as `near` -> (N, filters)."""
        x = torch.cat([_on_cpu(x), x.new_zeros(1, x.shape[1])])
        out = x.new_empty(len(near), self.out_features)
        block = _block_rows(self.out_features)
        for start in range(0, len(near), block):
            rows = near[start : start + block]
            columns = x.index_select(0, rows.flatten()).view(len(rows), -1)
            self.write(columns, out[start : start + block])
        return out


class Int8LSTM(nn.Module):
    """A bidirectional torch.nn.LSTM of one layer with int8 weights, for packed rows on a CPU.

    Its arguments are those of `Int8Linear`.

    Examples:
        >>> from spacy_psa.modules.lstm import Packing
        >>> packing = Packing(torch.tensor([12, 8]))
        >>> lstm = Int8LSTM(nn.LSTM(32, 8, bidirectional=True))
        >>> order = torch.stack([packing.forward, packing.backward])
        >>> lstm.packed(torch.randn(20, 32), order, packing.sizes).shape
        torch.Size([2, 20, 8])
    """

    def __init__(self, lstm: nn.LSTM, rounding: Rounding = to_int8):
        super().__init__()
        self.hidden_size = lstm.hidden_size
        self.products = {f"{name}_{d}": Int8Product() for name in ("ih", "hh") for d in (0, 1)}
        w_ih, w_hh, bias = direction_weights(lstm)
        for d in (0, 1):
            for name, weight in (("ih", w_ih[d]), ("hh", w_hh[d])):
                rounded, scale = rounding(weight.detach())
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
        first = Distinct(_on_cpu(x if x.dim() == 2 else x[0]))
        both = [first, first if x.dim() == 2 else Distinct(_on_cpu(x[1]))]
        enter = [partial(self._enter, d) for d in (0, 1)]
        again = [partial(self._again, d) for d in (0, 1)]
        return states(both, index, self.hidden_size, sizes, enter, again)

    def _enter(self, d: int, x: Tensor) -> Tensor:
        bias = self.get_buffer(f"bias_{d}")
        out = x.new_empty(len(x), len(bias))
        return affine(x, *self._weights(f"ih_{d}"), bias, self.products[f"ih_{d}"], out)

    def _again(self, d: int, out: Tensor, h: Tensor) -> None:
        add_product(h, *self._weights(f"hh_{d}"), self.products[f"hh_{d}"], out)

    def _weights(self, name: str) -> tuple[Tensor, Tensor]:
        return self.get_buffer(f"w_{name}"), self.get_buffer(f"scale_{name}")


LAYERS: dict[type[nn.Module], Callable[..., nn.Module]] = {
    nn.Linear: Int8Linear,
    nn.LSTM: Int8LSTM,
    DilatedConvolution: Int8Convolution,
}


def quantize(module: nn.Module) -> int:
    """Replace the large layers inside a module by int8 layers, and return how many.

    These are nn.Linear, bidirectional nn.LSTM and `DilatedConvolution`, at any depth. A layer of k
    outputs from d inputs is large if k·d / (k + d) is at least `LEAST_WORK`: the work of its
    product for each number that must be converted. Others would become slower. Embeddings, norms
    and single weights stay as they are.
    """
    large = [layer for layer in _layers(module) if _work(layer[2]) >= LEAST_WORK]
    for parent, name, child in large:
        setattr(parent, name, LAYERS[type(child)](child))
    return len(large)


def quantize_like(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Replace those layers inside a module that are in int8 in saved weights.

    The weights of the new layers have no values yet.

    Args:
        state: the `state_dict` of such a module, saved after `quantize`.
    """
    prefixes = {
        name.removesuffix(end)
        for name in state
        for end in (".scale", ".scale_ih_0")
        if name.endswith(end)
    }
    names = {child: name for name, child in module.named_modules()}
    for parent, name, child in _layers(module):
        if names[child] in prefixes:
            setattr(parent, name, LAYERS[type(child)](child, _unfilled))


def left_in_float32(module: nn.Module) -> dict[str, int]:
    """Count the weights that are not in int8, by kind: embeddings, norms, small layers and so on.

    Examples:
        >>> module = nn.Sequential(nn.Embedding(10, 300), nn.Linear(300, 300), nn.Linear(300, 9))
        >>> quantize(module)
        1
        >>> left_in_float32(module)
        {'embeddings': 3000, 'small layers': 2709}
    """
    kinds = {nn.Embedding: "embeddings", nn.EmbeddingBag: "embeddings", nn.LayerNorm: "norms"}
    kinds |= dict.fromkeys([nn.Linear, nn.LSTM, nn.Conv1d, DilatedConvolution], "small layers")
    counts: dict[str, int] = {}
    for child in module.modules():
        if own := sum(p.numel() for p in child.parameters(recurse=False)):
            kind = kinds.get(type(child), "single weights")
            counts[kind] = counts.get(kind, 0) + own
    return counts


def _layers(module: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    """Yield the layers that can be in int8, with the module that holds them and their names."""
    for name, child in list(module.named_children()):
        if type(child) in LAYERS:
            yield module, name, child
        else:
            yield from _layers(child)


def _work(layer: nn.Module) -> float:
    """Compute k·d / (k + d) of a layer; of an LSTM, d counts the inputs and the states."""
    if isinstance(layer, nn.LSTM):
        outputs, inputs = 4 * layer.hidden_size, layer.input_size + layer.hidden_size
    elif isinstance(layer, DilatedConvolution):
        outputs, inputs = layer.matrix().shape
    else:
        assert isinstance(layer, nn.Linear)
        outputs, inputs = layer.out_features, layer.in_features
    return outputs * inputs / (outputs + inputs)


def _unfilled(weight: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(weight, dtype=torch.int8), weight.new_empty(len(weight))


def _on_cpu(x: Tensor) -> Tensor:
    if x.device.type != "cpu":
        raise InputError("weights in int8 are for the CPU: load the model without a GPU")
    return x.float()
