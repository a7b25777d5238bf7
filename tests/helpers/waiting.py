"""Counts where a program on a GPU would wait for the device, on a machine without one."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.weak import WeakIdKeyDictionary

aten = torch.ops.aten
WAITS = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.equal.default,
    aten.repeat_interleave.Tensor,
}


class Waiting(TorchDispatchMode):
    """Follows tensors that would be on the device, and notes what reads a number of them.

    Args:
        device: the tensors that would be on the device. All that is computed of them is there too.
    """

    def __init__(self, *device: Tensor):
        super().__init__()
        self.device = WeakIdKeyDictionary()
        self.seen: list[str] = []
        for tensor in device:
            self.device[tensor] = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = [x for x in tree_iter((args, kwargs)) if isinstance(x, Tensor)]
        found = func(*args, **kwargs)
        if any(x in self.device for x in given):
            # An index of truth values is searched for the true ones.
            masks = func in (aten.index.Tensor, aten.index_put_.default) and any(
                x.dtype == torch.bool for x in given[1:]
            )
            if func in WAITS or masks:
                self.seen.append(str(func))
            for x in tree_iter(found):
                if isinstance(x, Tensor):
                    self.device[x] = True
        return found


class Launches(TorchDispatchMode):
    """Counts the operations of torch, about as many as the kernels that a GPU would launch."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


class Reading(TorchFunctionMode):
    """Notes the copies that `Waiting`, which it shares its tensors with, cannot see.

    They are those to the host, and those to the device from memory that is not pinned, for which a
    program waits too; see `ragged.to_device`.
    """

    def __init__(self, waiting: Waiting):
        super().__init__()
        self.waiting = waiting

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (Tensor.tolist, Tensor.numpy, Tensor.cpu) and args[0] in self.waiting.device:
            self.waiting.seen.append(func.__name__)
        there = self.waiting.device
        if func is Tensor.to and args[0] not in there:
            given = [*args[1:], *(kwargs or {}).values()]
            if any(isinstance(x, torch.device) or (_is_tensor(x) and x in there) for x in given):
                self.waiting.seen.append("to")
        if func is Tensor.new_tensor and args[0] in there:
            self.waiting.seen.append("new_tensor")
        found = func(*args, **(kwargs or {}))
        if "device" in (kwargs or {}) and _is_tensor(found):  # made there, as by torch.arange
            there[found] = True
        return found


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


def waits(function: Callable[[], Any], *device: Tensor) -> list[str]:
    """The operations of a call that would wait for the device."""
    waiting = Waiting(*device)
    with Reading(waiting), waiting:
        function()
    return waiting.seen
