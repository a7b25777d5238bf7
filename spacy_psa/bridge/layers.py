"""Torch modules as thinc layers: Model[List[Floats2d], List[Floats2d]]."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy
import torch
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn

from spacy_psa.bridge.shim import TorchShim

FORMER_NAMES = {"width": "input_width"}


def torch_layer(
    name: str,
    make: Callable[..., nn.Module],
    settings: dict[str, Any] | None = None,
    former_names: Mapping[str, str] = FORMER_NAMES,
) -> Model:
    """Make a thinc layer of a torch module `(x: (N, nI), lengths: (B,)) -> (N, nO)`.

    The layer is Model[List[Floats2d], List[Floats2d]] with one array for each sentence. Empty
    arrays pass through.

    Args:
        name: the name of the layer.
        make: called with `input_width=nI` and the settings on initialization; gives the module.
            Its attribute `output_width` is the width of the output. If the module does not give
            one row for each row that it takes, its method `out_lengths(lengths)`, (B,) int64 ->
            (B,) int64, counts them.
        settings: the settings of the module.
        former_names: other names of settings in models saved by version 0.1; see `TorchShim`.

    Examples:
        >>> from spacy_psa.modules.lstm import BiLSTM
        >>> layer = torch_layer("bilstm", BiLSTM, {"hidden": 10})
        >>> sentences = [layer.ops.alloc2f(3, 20), layer.ops.alloc2f(5, 20)]
        >>> _ = layer.initialize(X=sentences)
        >>> [array.shape for array in layer.predict(sentences)]
        [(3, 20), (5, 20)]
    """
    return Model(
        name,
        _forward,
        init=_init_encoder,
        dims={"nI": None, "nO": None},
        shims=[TorchShim(make, settings or {}, former_names)],
    )


def head_layer(
    name: str, make: Callable[..., nn.Module], settings: dict[str, Any] | None = None
) -> Model:
    """Make a thinc layer of a head, whose output is as wide as the number of labels.

    The nO of the layer, the number of labels, must be set before initialization.

    Args:
        name: the name of the layer.
        make: called with `input_width=nI`, `labels=nO` and the settings on initialization; gives
            the module. See `torch_layer`.
        settings: the settings of the module.

    Examples:
        >>> from spacy_psa.modules.chain_potentials import LabelPair
        >>> layer = head_layer("label_pair", LabelPair)
        >>> layer.set_dim("nO", 5)
        >>> sentences = [layer.ops.alloc2f(3, 20)]
        >>> _ = layer.initialize(X=sentences)
        >>> layer.predict(sentences)[0].shape
        (3, 25)
    """
    model = torch_layer(name, make, settings)
    model.init = _init_head
    return model


def join_rows(xp: Any, arrays: list[Floats2d]) -> Floats2d:
    """Join arrays by their rows.

    On a GPU, parts of one array that follow each other are joined without a copy, because each copy
    of a small array takes a launch. Do not change the result in place.

    Args:
        xp: numpy, or cupy for arrays on a GPU.
        arrays: at least one, (rows, d) each.

    Returns:
        (N, d), with N the rows of all arrays.

    Examples:
        >>> join_rows(numpy, [numpy.zeros((2, 3)), numpy.zeros((1, 3))]).shape
        (3, 3)
    """
    first = arrays[0]
    if xp is numpy or not _follow_each_other(arrays):
        return xp.concatenate(arrays)
    rows = sum(map(len, arrays))
    return xp.ndarray((rows, *first.shape[1:]), dtype=first.dtype, memptr=first.data)


def _follow_each_other(arrays: list[Any]) -> bool:
    """Whether arrays on a GPU lie one after the other in one block of memory."""
    owner, end = arrays[0].data.mem, arrays[0].data.ptr
    for array in arrays:
        if not array.flags.c_contiguous or array.data.mem is not owner or array.data.ptr != end:
            return False
        end += array.nbytes
    return True


def shim_of(model: Model) -> TorchShim:
    """Give the shim of a node that `torch_layer` or an embedder made."""
    shim = model.shims[0]
    assert isinstance(shim, TorchShim)
    return shim


def run_shim(model: Model, inputs: tuple[Tensor, ...], is_train: bool) -> tuple[Any, Callable]:
    """Run the module of a node on tensors.

    Args:
        model: the node.
        inputs: the tensors.
        is_train: whether to prepare the backward pass.

    Returns:
        The output, as an array of the node's ops; and a callback from the gradient of the output
        to the gradients of the inputs, each a tensor or None.
    """
    shim = shim_of(model)
    output, torch_backprop = shim(inputs, is_train)

    def backprop(d_output: Any) -> tuple[Tensor | None, ...]:
        return torch_backprop(xp2torch(d_output, device=shim.device))

    return torch2xp(output.detach()), backprop


def _forward(
    model: Model, X: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats2d]]]:
    shim = shim_of(model)
    sizes = [len(x) for x in X]
    if not sum(sizes):
        width = model.get_dim("nO") if model.has_dim("nO") else 0
        empty = [model.ops.alloc2f(0, width) for _ in X]
        return empty, lambda dY: [model.ops.alloc2f(*x.shape) for x in X]
    # Empty arrays from a transformer's listener have no width.
    filled = [x for x in X if len(x)]
    alone = len(filled) == 1 and not is_train
    rows = filled[0] if alone else join_rows(model.ops.xp, filled)
    flat = xp2torch(rows, requires_grad=is_train, device=shim.device)
    lengths = torch.tensor([size for size in sizes if size])
    output, torch_backprop = shim((flat, lengths), is_train)
    ends = numpy.cumsum(sizes)[:-1]
    Y = model.ops.xp.split(torch2xp(output.detach()), _out_ends(shim.module, sizes, lengths))

    def backprop(dY: list[Floats2d]) -> list[Floats2d]:
        d_output = xp2torch(join_rows(model.ops.xp, dY), device=shim.device)
        d_flat = torch_backprop(d_output)[0]
        assert d_flat is not None
        return model.ops.xp.split(torch2xp(d_flat), ends)

    return Y, backprop


def _out_ends(module: nn.Module, sizes: list[int], lengths: Tensor) -> Any:
    """Find where the rows of each sentence but the last end in the output of a module."""
    out_lengths = getattr(module, "out_lengths", None)
    if out_lengths is None:
        return numpy.cumsum(sizes)[:-1]
    out = numpy.zeros(len(sizes), dtype="int64")
    out[numpy.array(sizes) > 0] = out_lengths(lengths).numpy()
    return numpy.cumsum(out)[:-1]


def _init_encoder(model: Model, X: Any = None, Y: Any = None) -> None:
    _set_width(model, X)
    shim = shim_of(model)
    if shim._model is None:
        shim.build(input_width=model.get_dim("nI"))
    model.set_dim("nO", int(shim.module.output_width))  # type: ignore[arg-type]


def _init_head(model: Model, X: Any = None, Y: Any = None) -> None:
    _set_width(model, X)
    shim = shim_of(model)
    if shim._model is None:
        shim.build(input_width=model.get_dim("nI"), labels=model.get_dim("nO"))


def _set_width(model: Model, X: Any) -> None:
    if X is not None:
        model.set_dim("nI", X[0].shape[1])


def differentiate(
    model: Model, scores: Sequence[Floats2d], function: Callable[[Tensor], Tensor]
) -> tuple[float, list[Floats2d]]:
    """Compute a loss of the output of a model, and its gradient.

    Args:
        model: the model.
        scores: its output, an array for each sentence.
        function: from the rows of all arrays to the loss, a single number.

    Returns:
        The loss, and its gradient with respect to each array.
    """
    flat = xp2torch(join_rows(model.ops.xp, list(scores))).requires_grad_()
    loss = function(flat)
    loss.backward()
    assert flat.grad is not None
    ends = numpy.cumsum([len(array) for array in scores])[:-1].tolist()
    gradients = model.ops.xp.split(torch2xp(flat.grad), ends)
    return float(loss.detach()), cast(list[Floats2d], gradients)
