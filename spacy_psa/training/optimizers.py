"""Optimizers that update all the parameters of a torch module in one fused step."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from thinc.api import xp2torch
from torch import nn

from spacy_psa.bridge.optimizer import TensorOptimizer
from spacy_psa.errors import InputError


class MomentumSGD(TensorOptimizer):
    """Stochastic gradient descent with momentum: v <- m v + g, w <- w - lr v.

    Each number in g is first moved into ±clip_value, unless that is 0.
    """

    def __init__(
        self,
        learn_rate: float | Iterable[float],
        momentum: float,
        use_averages: bool,
        clip_value: float = 0.0,
    ):
        make = partial(torch.optim.SGD, lr=0.0, momentum=momentum, fused=True)
        super().__init__(make, learn_rate, use_averages=use_averages, beta1=0.0, beta2=0.0)
        self.momentum = momentum
        self.clip_value = clip_value

    def update_module(self, key: int, module: nn.Module) -> None:
        if self.clip_value:
            nn.utils.clip_grad_value_(module.parameters(), self.clip_value)
        super().update_module(key, module)

    def __call__(
        self, key: tuple[int, str], weights: Any, gradient: Any, *, lr_scale: float = 1.0
    ) -> tuple[Any, Any]:
        """The same step for a parameter of a thinc layer."""
        if self.clip_value:
            gradient.clip(-self.clip_value, self.clip_value, out=gradient)
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
    clip_value: float = 0.0,
) -> MomentumSGD:
    """`SGD.v1`: Wei2020 section 5.2 takes momentum 0.9 and lr 0.015 / (1 + 0.05 epoch).

    learn_rate: a float or a schedule, stepped once an update. momentum: 0 for plain
    SGD. use_averages: evaluate and save a moving average of the weights. The global
    norm of the gradients is clipped by the pipe (`max_grad_norm`), which sees them all.
    clip_value: limit of each number in the gradients, applied after that (the code of
    TENER: 5, and no limit of the norm); 0 for none.

    Errors: InputError for a clip_value below 0.
    """
    if clip_value < 0:
        raise InputError(f"SGD.v1: clip_value is {clip_value}: take 0 for none, or more")
    return MomentumSGD(learn_rate, momentum, use_averages, clip_value)


class AdaptiveOptimizer(TensorOptimizer):
    """A TensorOptimizer that takes torch's steps for the parameters of thinc layers too.

    make: as for TensorOptimizer; nothing but the learning rate changes in training.
    """

    def __init__(
        self,
        make: Callable[..., torch.optim.Optimizer],
        learn_rate: float | Iterable[float],
        use_averages: bool,
    ):
        super().__init__(make, learn_rate, use_averages=use_averages, beta1=0.0, beta2=0.0)
        self.by_array: dict[tuple[int, str], torch.optim.Optimizer] = {}

    def __call__(
        self, key: tuple[int, str], weights: Any, gradient: Any, *, lr_scale: float = 1.0
    ) -> tuple[Any, Any]:
        """The same step for a parameter of a thinc layer, whose memory torch shares."""
        optimizer = self.by_array.get(key)
        if optimizer is None:
            optimizer = self.by_array[key] = self.make([nn.Parameter(xp2torch(weights))])
        (group,) = optimizer.param_groups
        (parameter,) = group["params"]
        parameter.data, parameter.grad = xp2torch(weights), xp2torch(gradient)
        group["lr"] = lr_scale * self.learn_rate
        optimizer.step()
        # The rest, averages and gradients of zero, is thinc's, as of a step of no length.
        return super().__call__(key, weights, gradient, lr_scale=0.0)


class Adam(AdaptiveOptimizer):
    """Adam (Kingma & Ba 2015), as torch.optim.Adam has it.

    With gradient g, and m and v the moving averages of g and g² with beta1 and beta2,
        w <- w - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).
    thinc's Adam.v1 adds eps to sqrt(v), before the correction.
    """

    def __init__(
        self,
        learn_rate: float | Iterable[float],
        beta1: float,
        beta2: float,
        eps: float,
        use_averages: bool,
    ):
        make = partial(torch.optim.Adam, lr=0.0, betas=(beta1, beta2), eps=eps, fused=True)
        super().__init__(make, learn_rate, use_averages)


def adam(
    learn_rate: float | Iterable[float] = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    use_averages: bool = False,
) -> Adam:
    """`Adam.v1`: Adam in one fused step a module (Kitaev2018 appendix A; its code has beta2 0.98,
    eps 1e-9 and a rate of 8e-4).

    learn_rate: a float or a schedule, stepped once an update. beta1, beta2: how slowly
    the averages of gradients and of their squares move. eps: added to the divisor.
    use_averages: evaluate and save a moving average of the weights. Gradients are not
    clipped here: see the pipe's `max_grad_norm`.
    """
    return Adam(learn_rate, beta1, beta2, eps, use_averages)


class Nadam(AdaptiveOptimizer):
    """Adam with Nesterov momentum (Dozat 2016), as torch.optim.NAdam has it.

    With mu_t = beta1 (1 - 0.96^(0.004 t) / 2), gradient g, and m and v the moving
    averages of g and g² with beta1 and beta2,
        w <- w - lr ((1 - mu_t) g / (1 - Π_{i≤t} mu_i)
                     + mu_{t+1} m / (1 - Π_{i≤t+1} mu_i)) / (sqrt(v / (1 - beta2^t)) + eps).
    """

    def __init__(
        self,
        learn_rate: float | Iterable[float],
        beta1: float,
        beta2: float,
        eps: float,
        use_averages: bool,
    ):
        make = partial(torch.optim.NAdam, lr=0.0, betas=(beta1, beta2), eps=eps)
        super().__init__(make, learn_rate, use_averages)


def nadam(
    learn_rate: float | Iterable[float] = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    use_averages: bool = False,
) -> Nadam:
    """`Nadam.v1`: Li2019 section 5.2 names it without settings; the defaults are those of the
    authors' code.

    learn_rate: a float or a schedule, stepped once an update. beta1, beta2: how slowly
    the averages of gradients and of their squares move. eps: added to the divisor; Keras
    takes 1e-7. use_averages: evaluate and save a moving average of the weights.
    """
    return Nadam(learn_rate, beta1, beta2, eps, use_averages)
