"""Optimizers that update all parameters of a torch module in one step."""

from collections.abc import Callable, Iterable
from functools import partial
from numbers import Real
from typing import Any, cast

import torch
from thinc.api import xp2torch
from torch import nn

from spacy_psa.bridge.optimizer import TensorOptimizer
from spacy_psa.errors import check_amounts, check_rates, naming


class MomentumSGD(TensorOptimizer):
    """Stochastic gradient descent with momentum.

    With gradient g, velocity v, momentum m and learning rate lr, an update is

        v <- m v + g,    w <- w - lr v.

    Each number in g is first moved into ±clip_value, unless that is 0; then weight_decay · w is
    added to g.

    Args:
        learn_rate: lr, a float or a schedule that gives a rate for each update.
        momentum: m; 0 for plain SGD.
        use_averages: whether to keep a moving average of the weights.
        clip_value: largest absolute value of each number in g; 0 for no limit.
        weight_decay: factor by which the weights are added to their gradients (L2 regularization).

    Examples:
        >>> optimizer = MomentumSGD(0.5, momentum=0.9, use_averages=False)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(module.weight)
        >>> module(torch.ones(1, 1)).sum().backward()  # a gradient of 1
        >>> optimizer.update_module(0, module)
        >>> round(module.weight.item(), 4)
        0.5
    """

    def __init__(
        self,
        learn_rate: float | Iterable[float],
        momentum: float,
        use_averages: bool,
        clip_value: float = 0.0,
        weight_decay: float = 0.0,
    ):
        make = partial(
            torch.optim.SGD, lr=0.0, momentum=momentum, weight_decay=weight_decay, fused=True
        )
        super().__init__(make, learn_rate, use_averages=use_averages, beta1=0.0, beta2=0.0)
        self.momentum = momentum
        self.clip_value = clip_value
        self.weight_decay = weight_decay

    def update_module(self, key: int, module: nn.Module) -> None:
        """Make one step for every parameter of a module that has a gradient.

        Args:
            key: a number for the module.
            module: the module.
        """
        if self.clip_value:
            for parameter in module.parameters():
                if parameter.grad is not None:  # in one pass; torch's own function makes two
                    parameter.grad.clamp_(-self.clip_value, self.clip_value)
        super().update_module(key, module)

    def __call__(
        self, key: tuple[int, str], weights: Any, gradient: Any, *, lr_scale: float = 1.0
    ) -> tuple[Any, Any]:
        """Make the same step for a parameter of a thinc layer."""
        if self.clip_value:
            gradient.clip(-self.clip_value, self.clip_value, out=gradient)
        if self.weight_decay:
            gradient += self.weight_decay * weights
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
    weight_decay: float = 0.0,
) -> MomentumSGD:
    """Build the optimizer `SGD.v1`, stochastic gradient descent with momentum.

    Wei2020 (section 5.2) takes momentum 0.9 and a learning rate of 0.015 / (1 + 0.05 epoch). The
    joint norm of the gradients is clipped by the component (`max_grad_norm`), which has them all.

    Args:
        learn_rate: a float, or a schedule that gives a rate for each update.
        momentum: 0 for plain SGD.
        use_averages: whether to evaluate and save a moving average of the weights.
        clip_value: largest absolute value of each number in the gradients, applied after
            `max_grad_norm`; 0 for no limit. The code of Yan2019 takes 5, and no limit of the
            norm.
        weight_decay: factor by which the weights are added to their gradients, as in
            torch.optim.SGD.

    Raises:
        InputError: if a setting has a value that is not possible.

    Examples:
        >>> optimizer = sgd(learn_rate=0.5)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(module.weight)
        >>> module(torch.ones(1, 1)).sum().backward()  # a gradient of 1
        >>> optimizer.update_module(0, module)
        >>> round(module.weight.item(), 4)
        0.5
    """
    with naming("SGD.v1"):
        check_amounts("take 0 for no limit, or more", clip_value=clip_value)
        check_rates(below_one=True, momentum=momentum)
        _check(learn_rate, weight_decay)
    return MomentumSGD(learn_rate, momentum, use_averages, clip_value, weight_decay)


class AdaptiveOptimizer(TensorOptimizer):
    """Base class of optimizers that take torch's steps for the parameters of thinc layers too.

    Args:
        make: gives a torch.optim.Optimizer for parameters. Of its settings, only the learning rate
            may change in training.
        learn_rate: a float, or a schedule that gives a rate for each update.
        use_averages: whether to keep a moving average of the weights.

    Examples:
        >>> make = partial(torch.optim.Adagrad, lr=0.0)
        >>> optimizer = AdaptiveOptimizer(make, 0.1, use_averages=False)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(module.weight)
        >>> module(torch.ones(1, 1)).sum().backward()  # a gradient of 1
        >>> optimizer.update_module(0, module)
        >>> round(module.weight.item(), 4)
        0.9
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
        """Make the same step for a parameter of a thinc layer, whose memory torch shares."""
        optimizer = self.by_array.get(key)
        if optimizer is None:
            optimizer = self.by_array[key] = self.make([nn.Parameter(xp2torch(weights))])
        (group,) = optimizer.param_groups
        (parameter,) = group["params"]
        parameter.data, parameter.grad = xp2torch(weights), xp2torch(gradient)
        group["lr"] = lr_scale * self.learn_rate
        optimizer.step()
        # thinc then updates its averages and clears the gradient; a learning rate of 0 keeps the
        # weights as they are.
        return super().__call__(key, weights, gradient, lr_scale=0.0)


class MomentOptimizer(AdaptiveOptimizer):
    """Base class of Adam and its kin, which average the gradients and their squares.

    A subclass names the optimizer of torch, `make_steps`.

    Args:
        learn_rate: a float, or a schedule that gives a rate for each update.
        beta1: decay of the average of gradients.
        beta2: decay of the average of squared gradients.
        eps: a small number that is added to the divisor.
        use_averages: whether to keep a moving average of the weights.
        weight_decay: the setting of this name of torch's optimizer.

    Examples:
        >>> optimizer = Adam(0.1, 0.9, 0.999, 1e-8, use_averages=False)
        >>> isinstance(optimizer, MomentOptimizer)
        True
    """

    make_steps: Callable[..., torch.optim.Optimizer]

    def __init__(
        self,
        learn_rate: float | Iterable[float],
        beta1: float,
        beta2: float,
        eps: float,
        use_averages: bool,
        weight_decay: float = 0.0,
    ):
        settings = {"betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay}
        super().__init__(partial(self.make_steps, lr=0.0, **settings), learn_rate, use_averages)


class Adam(MomentOptimizer):
    """Adam (Kingma & Ba 2015), as in torch.optim.Adam.

    With gradient g, and m and v the moving averages of g and g² with beta1 and beta2, the t-th
    update is

        w <- w - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).

    thinc's Adam.v1 differs: it adds eps to sqrt(v), before the correction.

    Args:
        learn_rate: lr, a float or a schedule that gives a rate for each update.
        beta1: decay of the average m.
        beta2: decay of the average v.
        eps: a small number that is added to the divisor.
        use_averages: whether to keep a moving average of the weights.
        weight_decay: factor by which the weights are added to g (L2 regularization).

    Examples:
        >>> optimizer = Adam(0.1, 0.9, 0.999, 1e-8, use_averages=False)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(module.weight)
        >>> module(torch.ones(1, 1)).sum().backward()  # a gradient of 1
        >>> optimizer.update_module(0, module)
        >>> round(module.weight.item(), 4)
        0.9
    """

    make_steps = staticmethod(partial(torch.optim.Adam, fused=True))


def adam(
    learn_rate: float | Iterable[float] = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    use_averages: bool = False,
    weight_decay: float = 0.0,
) -> Adam:
    """Build the optimizer `Adam.v1`: Adam in one fused step for a module.

    Kitaev2018 (appendix A) uses Adam; its code has beta2 0.98, eps 1e-9 and a learning rate of
    8e-4. Gradients are not clipped here; see `max_grad_norm` of the component.

    Args:
        learn_rate: a float, or a schedule that gives a rate for each update.
        beta1: decay of the average of gradients.
        beta2: decay of the average of squared gradients.
        eps: a small number that is added to the divisor.
        use_averages: whether to evaluate and save a moving average of the weights.
        weight_decay: factor by which the weights are added to their gradients, as in
            torch.optim.Adam.

    Raises:
        InputError: if a setting has a value that is not possible.

    Examples:
        >>> optimizer = adam(learn_rate=0.1)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(module.weight)
        >>> module(torch.ones(1, 1)).sum().backward()  # a gradient of 1
        >>> optimizer.update_module(0, module)
        >>> round(module.weight.item(), 4)
        0.9
    """
    _check_moments("Adam.v1", learn_rate, beta1, beta2, eps, weight_decay)
    return Adam(learn_rate, beta1, beta2, eps, use_averages, weight_decay)


class AdamW(MomentOptimizer):
    """Adam whose weight decay does not pass through its averages, as in torch.optim.AdamW.

    Each update first multiplies the weights by 1 - lr · weight_decay, then takes the step of `Adam`
    (Loshchilov & Hutter 2019, Algorithm 2).

    Args:
        learn_rate: lr, a float or a schedule that gives a rate for each update.
        beta1: decay of the average of gradients.
        beta2: decay of the average of squared gradients.
        eps: a small number that is added to the divisor.
        use_averages: whether to keep a moving average of the weights.
        weight_decay: share of the weights, times lr, that an update takes away.

    Examples:
        >>> optimizer = AdamW(0.1, 0.9, 0.999, 1e-8, use_averages=False, weight_decay=0.5)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(module.weight)
        >>> module(torch.ones(1, 1)).sum().backward()  # a gradient of 1
        >>> optimizer.update_module(0, module)
        >>> round(module.weight.item(), 4)
        0.85
    """

    make_steps = staticmethod(partial(torch.optim.AdamW, fused=True))


def adamw(
    learn_rate: float | Iterable[float] = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    use_averages: bool = False,
    weight_decay: float = 0.01,
) -> AdamW:
    """Build the optimizer `AdamW.v1`: Adam with decoupled weight decay.

    Gradients are not clipped here; see `max_grad_norm` of the component.

    Args:
        learn_rate: a float, or a schedule that gives a rate for each update.
        beta1: decay of the average of gradients.
        beta2: decay of the average of squared gradients.
        eps: a small number that is added to the divisor.
        use_averages: whether to evaluate and save a moving average of the weights.
        weight_decay: share of the weights, times the rate, that an update takes away. The vectors
            that `WordEmbed.v1` learns beside pretrained ones go back to these thereby.

    Raises:
        InputError: if a setting has a value that is not possible.

    Examples:
        >>> optimizer = adamw(learn_rate=0.1, weight_decay=0.5)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(module.weight)
        >>> module(torch.ones(1, 1)).sum().backward()  # a gradient of 1
        >>> optimizer.update_module(0, module)
        >>> round(module.weight.item(), 4)
        0.85
    """
    _check_moments("AdamW.v1", learn_rate, beta1, beta2, eps, weight_decay)
    return AdamW(learn_rate, beta1, beta2, eps, use_averages, weight_decay)


class Nadam(MomentOptimizer):
    """Adam with Nesterov momentum (Dozat 2016), as in torch.optim.NAdam.

    With gradient g, m and v the moving averages of g and g² with beta1 and beta2, and
    mu_t = beta1 (1 - 0.96^(0.004 t) / 2), the t-th update is

        w <- w - lr ((1 - mu_t) g / (1 - Π_{i≤t} mu_i)
                     + mu_{t+1} m / (1 - Π_{i≤t+1} mu_i)) / (sqrt(v / (1 - beta2^t)) + eps).

    Args:
        learn_rate: lr, a float or a schedule that gives a rate for each update.
        beta1: decay of the average m.
        beta2: decay of the average v.
        eps: a small number that is added to the divisor.
        use_averages: whether to keep a moving average of the weights.
        weight_decay: factor by which the weights are added to g (L2 regularization).

    Examples:
        >>> optimizer = Nadam(0.1, 0.9, 0.999, 1e-8, use_averages=False)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(module.weight)
        >>> module(torch.ones(1, 1)).sum().backward()  # a gradient of 1
        >>> optimizer.update_module(0, module)
        >>> round(module.weight.item(), 4)
        0.8944
    """

    make_steps = staticmethod(torch.optim.NAdam)


def nadam(
    learn_rate: float | Iterable[float] = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    use_averages: bool = False,
    weight_decay: float = 0.0,
) -> Nadam:
    """Build the optimizer `Nadam.v1`, Adam with Nesterov momentum.

    Li2019 (section 5.2) names it without settings; the defaults are those of the authors' code.
    Gradients are not clipped here; see `max_grad_norm` of the component.

    Args:
        learn_rate: a float, or a schedule that gives a rate for each update.
        beta1: decay of the average of gradients.
        beta2: decay of the average of squared gradients.
        eps: a small number that is added to the divisor; Keras takes 1e-7.
        use_averages: whether to evaluate and save a moving average of the weights.
        weight_decay: factor by which the weights are added to their gradients, as in
            torch.optim.NAdam.

    Raises:
        InputError: if a setting has a value that is not possible.

    Examples:
        >>> optimizer = nadam(learn_rate=0.1)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(module.weight)
        >>> module(torch.ones(1, 1)).sum().backward()  # a gradient of 1
        >>> optimizer.update_module(0, module)
        >>> round(module.weight.item(), 4)
        0.8944
    """
    _check_moments("Nadam.v1", learn_rate, beta1, beta2, eps, weight_decay)
    return Nadam(learn_rate, beta1, beta2, eps, use_averages, weight_decay)


def _check(learn_rate: float | Iterable[float], weight_decay: float) -> None:
    check_amounts("take 0 for none, or more", weight_decay=weight_decay)
    if isinstance(learn_rate, (Real, str)):  # and no schedule
        check_amounts("take 0 or more, or a schedule", learn_rate=cast(float, learn_rate))


def _check_moments(
    name: str,
    learn_rate: float | Iterable[float],
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
) -> None:
    with naming(name):
        _check(learn_rate, weight_decay)
        check_rates(below_one=True, beta1=beta1, beta2=beta2)
        check_amounts(eps=eps)
