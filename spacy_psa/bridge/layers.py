"""Torch modules as thinc layers: Model[List[Floats2d], List[Floats2d]]."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, cast

import numpy
import torch
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn

from spacy_psa.bridge.shim import TorchShim, shim_of
from spacy_psa.errors import InputError

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
        make: called on initialization with `input_width=nI` and the settings to make the module.
            Its attribute `output_width` is the width of the output. If the module does not return
            one row for each row of x, its method `out_lengths(lengths)`, (B,) int64 -> (B,) int64,
            counts them.
        settings: the settings of the module.
        former_names: other names of settings in models saved by version 0.1; see `TorchShim`.
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

    The nO of the layer, the number of labels, must be set before initialization. `make` is called
    with `input_width=nI`, `labels=nO` and the settings; otherwise the layer is like that of
    `torch_layer`. In the backward pass, the gradients of parameters that the output lacks, the
    attribute `apart` of the module, follow those of the sentences.
    """
    model = torch_layer(name, make, settings)
    model.init = _init_head
    return model


def join_rows(xp: Any, arrays: list[Floats2d]) -> Floats2d:
    """Join arrays, at least one, by their rows: (rows, d) each -> (all rows, d).

    On a GPU, parts of one array that follow each other are joined without a copy, because each copy
    of a small array needs a launch. Do not change the result in place. `xp` is numpy or cupy.
    """
    first = arrays[0]
    if xp is numpy or not _follow_each_other(arrays):
        return xp.concatenate(arrays)
    rows = sum(map(len, arrays))
    return xp.ndarray((rows, *first.shape[1:]), dtype=first.dtype, memptr=first.data)


def split_rows(rows: Any, sizes: Iterable[int]) -> list[Any]:
    """Split an array into views with `sizes` rows each, as `join_rows` joined them."""
    ends = list(accumulate(sizes))
    return list(map(rows.__getitem__, map(slice, [0, *ends], ends)))


def _follow_each_other(arrays: list[Any]) -> bool:
    """Whether arrays on a GPU lie one after the other in one block of memory."""
    owner, end = arrays[0].data.mem, arrays[0].data.ptr
    for array in arrays:
        if not array.flags.c_contiguous or array.data.mem is not owner or array.data.ptr != end:
            return False
        end += array.nbytes
    return True


def _forward(
    model: Model, X: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats2d]]]:
    shim: Any = model.shims[0]
    xp = model.ops.xp
    sizes = list(map(len, X))
    filled = list(filter(len, X))  # empty arrays from a transformer's listener have no width
    if not filled:
        width = model.get_dim("nO") if model.has_dim("nO") else 0
        empty = [model.ops.alloc2f(0, width) for _ in X]
        return empty, lambda dY: [model.ops.alloc2f(*x.shape) for x in X]
    _check_width(model, filled[0])
    rows = filled[0] if len(filled) == 1 and not is_train else join_rows(xp, filled)
    device = shim.device
    flat = xp2torch(rows, requires_grad=is_train, device=device)
    lengths = torch.tensor(list(map(len, filled)))
    output, torch_backprop = shim((flat, lengths), is_train)
    out_sizes = sizes
    out_lengths = getattr(shim._model, "out_lengths", None)
    if out_lengths is not None:
        filled_sizes = iter(out_lengths(lengths).tolist())
        out_sizes = [next(filled_sizes) if size else 0 for size in sizes]

    def backprop(dY: list[Floats2d]) -> list[Floats2d]:
        d_output = xp2torch(join_rows(xp, dY[: len(sizes)]), device=device)
        d_flat = torch_backprop(d_output)[0]
        for parameter, gradient in zip(getattr(shim._model, "apart", ()), dY[len(sizes) :]):
            change = xp2torch(gradient, device=device)
            parameter.grad = change if parameter.grad is None else parameter.grad + change
        assert d_flat is not None
        return split_rows(torch2xp(d_flat), sizes)

    return split_rows(torch2xp(output.detach()), out_sizes), backprop


def _check_width(model: Model, x: Floats2d) -> None:
    """Raise InputError if vectors have another width than the weights are for."""
    if model.has_dim("nI") and model.get_dim("nI") != x.shape[1]:
        raise InputError(
            f"{model.name}: the vectors below it have width {x.shape[1]}, but it was made for "
            f"{model.get_dim('nI')}: set `width` of the listener to {x.shape[1]}, or use the "
            "component before it that the model was trained with"
        )


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
    model: Model,
    scores: Sequence[Floats2d],
    function: Callable[..., Tensor],
    apart: Sequence[Tensor] = (),
) -> tuple[float, list[Floats2d]]:
    """Compute a loss of the output of a model, and its gradient.

    Args:
        scores: its output, an array for each sentence.
        function: from the rows of all arrays, and `apart`, to the loss, a single number.
        apart: parameters that the loss also depends on.

    Returns:
        The loss, and its gradient with respect to each array, then to each of `apart`.
    """
    flat = xp2torch(join_rows(model.ops.xp, list(scores))).requires_grad_()
    leaves = [parameter.detach().requires_grad_() for parameter in apart]
    loss = function(flat, *leaves)
    loss.backward()
    assert flat.grad is not None
    own = split_rows(torch2xp(flat.grad), map(len, scores))
    others: list[Any] = [torch2xp(cast(Tensor, leaf.grad)) for leaf in leaves]
    return float(loss.detach()), own + others
