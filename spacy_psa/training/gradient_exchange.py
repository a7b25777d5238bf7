"""Adds up the gradients of several processes, in buckets, during the backward pass.

torch's DistributedDataParallel cannot do this: it hangs unless each process makes the same number
of backward passes in a step, while a part of a batch may need none or several. It would also send
whole tables of word vectors, and leave out the parameters of thinc's layers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import torch
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import FloatsXd
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from spacy_psa.training.processes import Processes

BUCKET = 250_000
"""Numbers that are sent together. More make fewer messages, fewer let the first start earlier."""


class GradientExchange:
    """Replaces the gradients of a step by their weighted sums over all processes.

    A bucket of gradients is sent when the backward pass has computed the last of them, so that the
    messages travel while it goes on. All processes send the buckets in the same order. Three kinds
    follow at the end: the rows of word vectors that the step reads, the gradients of thinc's own
    parameters, and those that grew after their bucket was sent.
    """

    def __init__(self, processes: Processes):
        self.processes = processes
        self._hooks: list[RemovableHandle] = []
        self._buckets: list[_Bucket] = []
        self._last: list[_Bucket] = []
        self._place: dict[Tensor, _Bucket] = {}
        self._sent = 0
        self._late = False

    def begin(
        self,
        modules: Mapping[nn.Module, float],
        nodes: Mapping[Model, float],
        rows: Mapping[nn.Parameter, Tensor],
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
        self._place = {p: bucket for bucket in self._buckets for p in bucket.missing}
        self._hooks = [p.register_post_accumulate_grad_hook(self._computed) for p in whole]
        self._sent, self._late = 0, False

    def finish(self, figures: Sequence[float] = ()) -> list[float]:
        """Put the sums where the gradients were, after the backward pass.

        Args:
            figures: numbers to add up over the processes along with the gradients.

        Returns:
            The sums of the figures.
        """
        for hook in self._hooks:
            hook.remove()
        buckets = [*self._buckets, *self._last]
        for bucket in buckets[self._sent :]:
            bucket.send(self.processes)
        numbers = torch.tensor([float(self._late), *figures], dtype=torch.float64)
        self.processes.add(numbers)()
        late, *summed = numbers.tolist()
        sums = [bucket.receive() for bucket in buckets]
        if late:
            for bucket in self._buckets:
                bucket.send(self.processes)
            for flat, bucket in zip(sums, self._buckets):
                flat += bucket.receive()
        for bucket, flat in zip(buckets, sums, strict=True):
            bucket.put(flat)
        return summed

    def _computed(self, parameter: Tensor) -> None:
        bucket = self._place[parameter]
        self._late |= bucket.is_sent
        bucket.missing.discard(parameter)
        while self._sent < len(self._buckets) and not self._buckets[self._sent].missing:
            self._buckets[self._sent].send(self.processes)
            self._sent += 1


class _Gradient(NamedTuple):
    """A gradient of this process: how to read it, and how to put the sum in its place."""

    parameter: Tensor
    size: int
    weight: float
    take: Callable[[], Tensor | None]
    put: Callable[[Tensor], None]


class _Bucket:
    """Gradients that are sent together, each with a flag: whether there is one."""

    def __init__(self, gradients: list[_Gradient]):
        self.gradients = gradients
        self.sizes = [*(gradient.size for gradient in gradients), len(gradients)]
        self.missing = {gradient.parameter for gradient in gradients}
        self.is_sent = False

    def send(self, processes: Processes) -> None:
        """Weight the gradients and begin to add them up."""
        self.flat = self.gradients[0].parameter.new_zeros(sum(self.sizes))
        *parts, flags = self.flat.split(self.sizes)
        for number, (gradient, part) in enumerate(zip(self.gradients, parts, strict=True)):
            value = gradient.take()
            if value is not None:
                torch.mul(value.reshape(-1), gradient.weight, out=part)
                flags[number] = 1.0
        self.wait = processes.add(self.flat)
        self.is_sent = True

    def receive(self) -> Tensor:
        """Wait for the sums and flags."""
        self.wait()
        return self.flat

    def put(self, flat: Tensor) -> None:
        """Put the sums in their places; where no process has a gradient, there stays none."""
        *parts, flags = flat.split(self.sizes)
        for gradient, part, flag in zip(self.gradients, parts, flags.tolist(), strict=True):
            if flag:
                gradient.put(part)


def _in_buckets(gradients: Iterable[_Gradient]) -> Iterator[_Bucket]:
    """Group gradients of one type and device, in order."""
    held: list[_Gradient] = []
    for gradient in gradients:
        if held:
            first, following = held[0].parameter, gradient.parameter
            fits = sum(each.size for each in held) + gradient.size <= BUCKET
            alike = (first.dtype, first.device) == (following.dtype, following.device)
            if not (fits and alike):
                yield _Bucket(held)
                held = []
        held.append(gradient)
    if held:
        yield _Bucket(held)


def _whole(parameter: nn.Parameter, weight: float) -> _Gradient:
    def take() -> Tensor | None:
        value, parameter.grad = parameter.grad, None  # later additions are sent at the end
        return value

    def put(value: Tensor) -> None:
        parameter.grad = value.view_as(parameter)

    return _Gradient(parameter, parameter.numel(), weight, take, put)


def _rows(parameter: nn.Parameter, weight: float, rows: Tensor) -> _Gradient:
    def take() -> Tensor | None:
        return None if parameter.grad is None else parameter.grad[rows]

    def put(value: Tensor) -> None:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad[rows] = value.view(len(rows), -1)

    return _Gradient(parameter, len(rows) * parameter[0].numel(), weight, take, put)


def _array(node: Model, name: str, weight: float) -> _Gradient:
    parameter = xp2torch(node.get_param(name))

    def take() -> Tensor | None:
        return xp2torch(node.get_grad(name)) if node.has_grad(name) else None

    def put(value: Tensor) -> None:
        node.set_grad(name, cast(FloatsXd, torch2xp(value.view_as(parameter).clone())))

    return _Gradient(parameter, parameter.numel(), weight, take, put)
