"""Matrix products in int8, for annotation on a CPU.

Weights are rounded to 8 bits once. Each row of a weight matrix, which makes one output of the
layer, has a scale of its own. The input of a product is rounded when it arrives, and each token
has a scale of its own ("dynamic quantisation"). Sums are computed in 32 bits, so they do not
overflow. Everything else stays in float32. Processors with VNNI or AMX are four times as fast in
int8 as in float32.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from torch import Tensor, nn

from spacy_psa import kernels
from spacy_psa.errors import InputError
from spacy_psa.modules.distinct import Distinct
from spacy_psa.modules.idcnn import DilatedConvolution
from spacy_psa.modules.int8_product import LEAST_ROWS, Int8Product
from spacy_psa.modules.recurrence import direction_weights, states

BLOCK_NUMBERS = 2**18
LEAST_WORK = 100

Rounding = Callable[[Tensor], tuple[Tensor, Tensor]]


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
) -> Tensor:
    """Add the product of x and int8 weights to `out`.

    Args:
        x: (M, d) float32.
        weight: (k, d) int8, the weights, of which the transpose is multiplied.
        scale: (k,), the scale of each row of the weights.
        product: what multiplies by these weights.
        out: (M, k) float32, which is changed.

    Returns:
        `out`.

    Examples:
        >>> x, (weight, scale) = torch.ones(17, 8), to_int8(torch.ones(8, 8))
        >>> out = add_product(x, weight, scale, Int8Product(), torch.ones(17, 8))
        >>> torch.allclose(out, torch.full((17, 8), 9.0))
        True
    """
    found, rows = _multiply(x, weight, product)
    if kernels.available():
        from spacy_psa.kernels import int8

        int8.add_scaled(found.numpy(), rows.numpy(), scale.numpy(), out.numpy())
        return out
    return out.addcmul_(found.float(), rows[:, None] * scale)


def affine(
    x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor, product: Int8Product, out: Tensor
) -> Tensor:
    """Compute the product of x and int8 weights, plus a bias.

    It works on some rows at a time, so that what it computes stays in the processor's cache.

    Args:
        x: (M, d) float32.
        weight: (k, d) int8, the weights, of which the transpose is multiplied.
        scale: (k,), the scale of each row of the weights.
        bias: (k,) float32.
        product: what multiplies by these weights.
        out: (M, k) float32, which is filled. Its rows may be parts of wider rows.

    Returns:
        `out`.

    Examples:
        >>> x, (weight, scale) = torch.ones(17, 8), to_int8(torch.ones(8, 8))
        >>> out = affine(x, weight, scale, torch.ones(8), Int8Product(), torch.empty(17, 8))
        >>> torch.allclose(out, torch.full((17, 8), 9.0))
        True
    """
    block = _block_rows(len(weight))
    for start in range(0, len(x), block):
        found, rows = _multiply(x[start : start + block], weight, product)
        part = out[start : start + block]
        if kernels.available():
            from spacy_psa.kernels import int8

            int8.scale_and_shift(
                found.numpy(), rows.numpy(), scale.numpy(), bias.numpy(),
                _flat(part).numpy(), out.stride(0),
            )  # fmt: skip
        else:
            torch.addcmul(bias, found.float(), rows[:, None] * scale, out=part)
    return out


def _block_rows(outputs: int) -> int:
    """Give the rows of which a product with so many columns stays in the cache."""
    return max(1, BLOCK_NUMBERS // outputs // LEAST_ROWS) * LEAST_ROWS


class Int8Linear(nn.Module):
    """A torch.nn.Linear with int8 weights, for annotation on a CPU.

    Args:
        linear: the layer whose weights are rounded.
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
    """A `DilatedConvolution` with int8 weights, for annotation on a CPU.

    Args:
        convolution: the convolution whose weights are rounded.
        rounding: makes int8 weights and their scales of a matrix.

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
        """Convolve x (N, nI), with `near` as `neighbours` gives it -> (N, filters)."""
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

    Args:
        lstm: the layer whose weights are rounded.
        rounding: makes int8 weights and their scales of a matrix.

    Examples:
        >>> from spacy_psa.modules.recurrence import Packing
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
        inputs = [x, x] if x.dim() == 2 else list(x)
        readers = [
            Distinct(_on_cpu(own)).reader(partial(self._enter, d)) for d, own in enumerate(inputs)
        ]

        def enter(d: int, rows: slice, out: Tensor) -> None:
            readers[d](index[d, rows], out)

        def again(d: int, h: Tensor, out: Tensor) -> None:
            add_product(h, *self._weights(f"hh_{d}"), self.products[f"hh_{d}"], out)

        return states(x.new_empty(index.shape[1], 0), self.hidden_size, sizes, enter, again)

    def _enter(self, d: int, x: Tensor) -> Tensor:
        weight, scale = self._weights(f"ih_{d}")
        bias, product = self.get_buffer(f"bias_{d}"), self.products[f"ih_{d}"]
        return affine(x, weight, scale, bias, product, x.new_empty(len(x), len(bias)))

    def _weights(self, name: str) -> tuple[Tensor, Tensor]:
        return self.get_buffer(f"w_{name}"), self.get_buffer(f"scale_{name}")


LAYERS: dict[type[nn.Module], Callable[..., nn.Module]] = {
    nn.Linear: Int8Linear,
    nn.LSTM: Int8LSTM,
    DilatedConvolution: Int8Convolution,
}


def quantize(module: nn.Module) -> int:
    """Replace the large layers inside a module by int8 layers, at any depth.

    These are nn.Linear, bidirectional nn.LSTM and `DilatedConvolution`. A layer of k outputs from d
    inputs is large if k·d / (k + d) is at least `LEAST_WORK`: the work of its product for each
    number that must be converted. Others would become slower. Embeddings, norms and single weights
    stay as they are.

    Returns:
        The number of layers that were replaced.

    Examples:
        >>> module = nn.Sequential(nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 9))
        >>> quantize(module)
        1
        >>> [type(child).__name__ for child in module]
        ['Int8Linear', 'ReLU', 'Linear']
    """
    large = [found for found in _layers(module) if _work(found[2]) >= LEAST_WORK]
    for parent, name, child in large:
        setattr(parent, name, LAYERS[type(child)](child))
    return len(large)


def quantize_like(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Replace those layers inside a module that are in int8 in saved weights.

    The weights of the new layers have no values yet.

    Args:
        module: a module with float32 weights.
        state: the `state_dict` of such a module, saved after `quantize`.

    Examples:
        >>> module, like = nn.Sequential(nn.Linear(300, 300)), nn.Sequential(nn.Linear(300, 300))
        >>> _ = quantize(module)
        >>> quantize_like(like, module.state_dict())
        >>> like.load_state_dict(module.state_dict())
        <All keys matched successfully>
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
    """Count the weights that are not in int8, by what they are.

    Examples:
        >>> module = nn.Sequential(nn.Embedding(10, 300), nn.Linear(300, 300), nn.Linear(300, 9))
        >>> _ = quantize(module)
        >>> left_in_float32(module)
        {'embeddings': 3000, 'small layers': 2709}
    """
    kinds = {nn.Embedding: "embeddings", nn.EmbeddingBag: "embeddings", nn.LayerNorm: "norms"}
    kinds |= dict.fromkeys([nn.Linear, nn.LSTM, nn.Conv1d, DilatedConvolution], "small layers")
    found: dict[str, int] = {}
    for child in module.modules():
        if own := sum(p.numel() for p in child.parameters(recurse=False)):
            kind = kinds.get(type(child), "single weights")
            found[kind] = found.get(kind, 0) + own
    return found


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
