"""Optimizers that update all the parameters of a torch module in one fused step.

To spaCy they are thinc optimizers: schedules, averages and parameters of thinc
layers work as usual. The bridge hands them whole torch modules.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from thinc.api import Optimizer
from torch import nn

AVERAGE_CEILING = 0.9999  # thinc's own limit for the decay of averages


class TensorOptimizer(Optimizer):
    """A thinc optimizer that keeps one torch optimizer for each torch module.

    make: from parameters to a torch.optim.Optimizer; its learning rate is set
    before each step from `learn_rate`, which may be a schedule.
    """

    def __init__(
        self,
        make: Callable[..., torch.optim.Optimizer],
        learn_rate: float | Iterable[float],
        *,
        use_averages: bool = False,
        **thinc_settings: Any,
    ):
        super().__init__(
            learn_rate, grad_clip=0.0, L2=0.0, use_averages=use_averages, **thinc_settings
        )
        self.make = make
        self.by_module: dict[int, torch.optim.Optimizer] = {}

    def update_module(self, key: int, module: nn.Module) -> None:
        """One step for every parameter of the module that has a gradient.

        Averages are kept under (key, parameter name), as thinc keeps its own."""
        parameters = list(module.parameters())
        if not parameters:  # torch refuses to optimize nothing
            return
        optimizer = self.by_module.get(key)
        if optimizer is None or optimizer.param_groups[0]["params"][0] is not parameters[0]:
            optimizer = self.by_module[key] = self.make(parameters)
        for group in optimizer.param_groups:
            group["lr"] = self.learn_rate
        optimizer.step()
        if self.averages is not None:
            self._average(key, module)

    def _average(self, key: int, module: nn.Module) -> None:
        for name, parameter in module.named_parameters():
            held = self.averages.setdefault((key, name), torch.zeros_like(parameter.data))
            self.nr_update[key, name] += 1
            t = self.nr_update[key, name]
            decay = min((1.0 + t) / (10.0 + t), AVERAGE_CEILING)
            held.lerp_(parameter.data, 1.0 - decay)


class MomentumSGD(TensorOptimizer):
    """Stochastic gradient descent with momentum: v <- m v + g, w <- w - lr v."""

    def __init__(
        self, learn_rate: float | Iterable[float], momentum: float, use_averages: bool
    ):
        make = partial(torch.optim.SGD, lr=0.0, momentum=momentum, fused=True)
        super().__init__(make, learn_rate, use_averages=use_averages, beta1=0.0, beta2=0.0)
        self.momentum = momentum

    def __call__(
        self, key: tuple[int, str], weights: Any, gradient: Any, *, lr_scale: float = 1.0
    ) -> tuple[Any, Any]:
        """The same step for a parameter of a thinc layer."""
        if self.momentum:
            velocity = self.mom1.get(key)
            if velocity is None:
                velocity = self.mom1[key] = gradient * 0
            velocity *= self.momentum
            velocity += gradient
            gradient[...] = velocity
        return super().__call__(key, weights, gradient, lr_scale=lr_scale)


def sgd(
    learn_rate: float | Iterable[float] = 0.015,
    momentum: float = 0.9,
    use_averages: bool = False,
) -> MomentumSGD:
    """`SGD.v1`: J section 5.2 takes momentum 0.9 and lr 0.015 / (1 + 0.05 epoch).

    learn_rate: a float or a schedule, stepped once an update. momentum: 0 for plain
    SGD. use_averages: evaluate and save a moving average of the weights. The global
    norm of the gradients is clipped by the pipe (`max_grad_norm`), which sees them all.
    """
    return MomentumSGD(learn_rate, momentum, use_averages)
