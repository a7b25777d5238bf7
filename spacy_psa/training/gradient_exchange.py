"""Adds up the gradients of several processes, in buckets, while the backward pass goes on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import FloatsXd
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from spacy_psa.training.processes import Addition, Processes

BUCKET = 250_000
"""Numbers that are sent together. More make fewer messages, fewer let the first start earlier."""


class GradientExchange:
    """Replaces the gradients of a step by their weighted sums over all processes.

    A bucket of gradients is sent when the backward pass has computed the last of them, so that the
    messages travel while it goes on. All processes send the buckets in the same order.

    Of a table of word vectors, only the rows that the step reads are sent. These, the gradients of
    thinc's own parameters, and those that grew after their bucket was sent go at the end.

    Args:
        processes: the processes.

    Examples:
        >>> layer = nn.Linear(2, 1)
        >>> exchange = GradientExchange(Processes())
        >>> exchange.begin({layer: 0.5}, {}, {})
        >>> layer(torch.ones(1, 2)).sum().backward()
        >>> exchange.finish([0.25])
        [0.25]
        >>> layer.weight.grad
        tensor([[0.5000, 0.5000]])
    """

    def __init__(self, processes: Processes):
        self.processes = processes
        self._hooked: list[nn.Parameter] = []
        self._hooks: list[RemovableHandle] = []
        self._buckets: list[_Bucket] = []
        self._last: list[_Bucket] = []
        self._place: dict[int, _Bucket] = {}
        self._sent = 0
        self._active = self._late = False

    def begin(
        self,
        modules: dict[nn.Module, float],
        nodes: dict[Model, float],
        rows: dict[nn.Parameter, Tensor],
    ) -> None:
        """Begin a step, before its backward pass.

        Args:
            modules: the torch modules, with the weight of this process's gradients in the sum.
            nodes: the thinc nodes with parameters of their own, likewise.
            rows: for each parameter of which few rows are read, their numbers (R,) int64, the same
                in all processes.
        """
        weights = {p: w for module, w in modules.items() for p in module.parameters()}
        weights = {p: w for p, w in weights.items() if p.requires_grad}
        # The backward pass comes to the last layers first.
        whole = [p for p in reversed(weights) if p not in rows]
        self._buckets = list(_in_buckets(_whole(p, weights[p]) for p in whole))
        tables = [_rows(p, weights[p], rows[p]) for p in rows if p in weights]
        arrays = [
            _array(node, name, weight)
            for node, weight in nodes.items()
            for name in node.param_names
            if node.has_param(name)
        ]
        self._last = list(_in_buckets([*tables, *arrays]))
        self._place = {key: bucket for bucket in self._buckets for key in bucket.missing}
        self._hook(whole)
        self._sent, self._active, self._late = 0, True, False

    def finish(self, figures: Sequence[float] = ()) -> list[float]:
        """Put the sums where the gradients were, after the backward pass.

        Args:
            figures: numbers to add up over the processes along with the gradients.

        Returns:
            The sums of the figures.
        """
        self._active = False
        for bucket in [*self._buckets[self._sent :], *self._last]:
            bucket.send(self.processes)
        told = torch.tensor([float(self._late), *figures], dtype=torch.float64)
        self.processes.add(told).wait()
        late, *summed = told.tolist()
        sums = [bucket.receive() for bucket in self._buckets]
        if late:
            for bucket in self._buckets:
                bucket.send(self.processes)
            sums = [one + bucket.receive() for one, bucket in zip(sums, self._buckets, strict=True)]
        sums += [bucket.receive() for bucket in self._last]
        for bucket, flat in zip([*self._buckets, *self._last], sums, strict=True):
            bucket.put(flat)
        return summed

    def _hook(self, parameters: list[nn.Parameter]) -> None:
        """Watch the gradients of parameters; a module that is made anew has new ones."""
        if list(map(id, parameters)) == list(map(id, self._hooked)):
            return
        for hook in self._hooks:
            hook.remove()
        self._hooked = parameters
        self._hooks = [p.register_post_accumulate_grad_hook(self._computed) for p in parameters]

    def _computed(self, parameter: Tensor) -> None:
        if not self._active:
            return
        bucket = self._place[id(parameter)]
        self._late |= bucket.addition is not None
        bucket.missing.discard(id(parameter))
        while self._sent < len(self._buckets) and not self._buckets[self._sent].missing:
            self._buckets[self._sent].send(self.processes)
            self._sent += 1


@dataclass
class _Gradient:
    """A gradient of this process: how to take it away, and how to put the sum in its place."""

    key: int
    size: int
    weight: float
    like: Tensor
    take: Callable[[], Tensor | None]
    put: Callable[[Tensor], None]


@dataclass
class _Bucket:
    """Gradients that are sent together, each with a flag: whether there is one."""

    gradients: list[_Gradient]
    missing: set[int] = field(init=False)
    addition: Addition | None = None

    def __post_init__(self) -> None:
        self.missing = {gradient.key for gradient in self.gradients}
        self.sizes = [gradient.size for gradient in self.gradients]
        self.flat = self.gradients[0].like.new_empty(0)

    def send(self, processes: Processes) -> None:
        """Take the gradients, weight them and begin to add them up."""
        self.flat = self.flat.new_zeros(sum(self.sizes) + len(self.sizes))
        *parts, flags = self.flat.split([*self.sizes, len(self.sizes)])
        for number, (gradient, part) in enumerate(zip(self.gradients, parts, strict=True)):
            value = gradient.take()
            if value is not None:
                torch.mul(value.reshape(-1), gradient.weight, out=part)
                flags[number] = 1.0
        self.addition = processes.add(self.flat)

    def receive(self) -> Tensor:
        """Wait for the sums and flags."""
        assert self.addition is not None
        self.addition.wait()
        return self.flat

    def put(self, flat: Tensor) -> None:
        """Put the sums in their places; where no process has a gradient, there stays none."""
        *parts, flags = flat.split([*self.sizes, len(self.sizes)])
        for gradient, part, flag in zip(self.gradients, parts, flags.tolist(), strict=True):
            if flag:
                gradient.put(part)


def _in_buckets(gradients: Iterable[_Gradient]) -> Iterator[_Bucket]:
    """Group gradients of one type and device, in order."""
    held: list[_Gradient] = []
    for gradient in gradients:
        if held:
            first = held[0].like
            fits = sum(one.size for one in held) + gradient.size <= BUCKET
            alike = (first.dtype, first.device) == (gradient.like.dtype, gradient.like.device)
            if not (fits and alike):
                yield _Bucket(held)
                held = []
        held.append(gradient)
    if held:
        yield _Bucket(held)


def _whole(parameter: nn.Parameter, weight: float) -> _Gradient:
    def take() -> Tensor | None:
        value, parameter.grad = parameter.grad, None
        return value

    def put(value: Tensor) -> None:
        parameter.grad = value.view_as(parameter)

    return _Gradient(id(parameter), parameter.numel(), weight, parameter.data, take, put)


def _rows(parameter: nn.Parameter, weight: float, rows: Tensor) -> _Gradient:
    def take() -> Tensor | None:
        return None if parameter.grad is None else parameter.grad[rows]

    def put(value: Tensor) -> None:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad[rows] = value.view(len(rows), -1)

    size = len(rows) * parameter[0].numel()
    return _Gradient(id(parameter), size, weight, parameter.data, take, put)


def _array(node: Model, name: str, weight: float) -> _Gradient:
    parameter = xp2torch(node.get_param(name))

    def take() -> Tensor | None:
        return xp2torch(node.get_grad(name)) if node.has_grad(name) else None

    def put(value: Tensor) -> None:
        node.set_grad(name, cast(FloatsXd, torch2xp(value.view_as(parameter).clone())))

    return _Gradient(id(parameter), parameter.numel(), weight, parameter, take, put)
