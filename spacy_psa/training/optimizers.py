"""Optimizers that update all parameters of a torch module in one step."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from numbers import Real
from typing import Any, cast
from warnings import warn

import torch
from thinc.api import Optimizer, xp2torch
from torch import nn

from spacy_psa.bridge.optimizer import TensorOptimizer
from spacy_psa.errors import InputError, check_amounts, check_rates, check_sizes, naming

Rate = float | Iterable[float]
"""A learning rate, or a schedule with a rate for each update."""
STEPS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "Adam.v1": partial(torch.optim.Adam, fused=True),
    "AdamW.v1": partial(torch.optim.AdamW, fused=True),
    "Nadam.v1": torch.optim.NAdam,
}
"""The optimizer of torch that makes the steps."""
PRETRAINED = "pretrained"
"""The pattern of the weights of pretrained encoders."""
LAYER = re.compile(r"\.(?:layers?|blocks?|h)\.(\d+)\.")


class MomentumSGD(TensorOptimizer):
    """Stochastic gradient descent with momentum; the settings are those of `sgd`."""

    def __init__(
        self,
        learn_rate: Rate,
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
    learn_rate: Rate = 0.015,
    momentum: float = 0.9,
    use_averages: bool = False,
    clip_value: float = 0.0,
    weight_decay: float = 0.0,
) -> MomentumSGD:
    """Build the optimizer `SGD.v1`, stochastic gradient descent with momentum.

    With gradient g, velocity v, momentum m and learning rate lr, an update is

        v <- m v + g,    w <- w - lr v.

    Each number in g is first moved into ±clip_value, unless that is 0; then weight_decay · w is
    added to g. Wei2020 (section 5.2) has momentum 0.9 and a learning rate of
    0.015 / (1 + 0.05 epoch). The joint norm of the gradients is clipped by the component
    (`max_grad_norm`), which has them all.

    Args:
        learn_rate: a float, or a schedule with a rate for each update.
        momentum: 0 for plain SGD.
        use_averages: whether to evaluate and save a moving average of the weights.
        clip_value: largest absolute value of each number in the gradients, applied after
            `max_grad_norm`; 0 for no limit. The code of Yan2019 has 5, and no limit of the
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
        check_amounts("it must be 0 for no limit, or more", clip_value=clip_value)
        check_rates(below_one=True, momentum=momentum)
        _check(learn_rate, weight_decay)
    return MomentumSGD(learn_rate, momentum, use_averages, clip_value, weight_decay)


class Rates:
    """Factors of the learning rate, by group of parameters.

    Args:
        rates: a factor for each pattern; the first pattern that a parameter matches counts, and a
            parameter that matches none has 1. "pretrained" stands for the weights of a pretrained
            encoder: those of a transformers.PreTrainedModel in a module of this package, and those
            of torch modules of other packages, such as spacy-transformers. Other patterns are those
            of fnmatch, for names such as "LabelPair.weight": the class of the module, then the name
            of the parameter in it.
        layer_decay: a factor for each layer of a PreTrainedModel that is between a weight and its
            output (Howard and Ruder 2018, section 3.2).

    Attributes:
        used: the patterns that have counted for a parameter, and "" if none did for one.

    Examples:
        >>> rates = Rates({"pretrained": 1.0, "Linear.bias": 0.0, "*": 100.0})
        >>> [rates.factor(name) for name in ("Linear.bias", "Linear.weight")]
        [0.0, 100.0]
    """

    def __init__(self, rates: Mapping[str, float], layer_decay: float = 1.0):
        for pattern, factor in rates.items():
            check_amounts("it must be 0 or more", **{f"rates: {pattern}": factor})
        check_rates(layer_decay=layer_decay)
        self.rates = dict(rates)
        self.layer_decay = layer_decay
        self.used: set[str] = set()

    def factor(self, name: str, pretrained: bool = False) -> float:
        """Return the factor of a parameter, without that of its layer."""
        for pattern, factor in self.rates.items():
            if pretrained if pattern == PRETRAINED else fnmatchcase(name, pattern):
                self.used.add(pattern)
                return factor
        self.used.add("")
        return 1.0

    def groups(self, module: nn.Module) -> list[dict[str, Any]]:
        """Divide the parameters of a module into groups for a torch.optim.Optimizer.

        Each has its factor as "scale". Biases and the weights of norms have no weight decay.
        """
        depths = dict(_depths(module))
        groups: dict[tuple[float, bool], dict[str, Any]] = {}
        for name, parameter in module.named_parameters():
            depth = depths.get(parameter)
            scale = self.factor(f"{type(module).__name__}.{name}", depth is not None)
            scale *= self.layer_decay ** (depth or 0)
            single = parameter.ndim < 2
            new: dict[str, Any] = {"params": [], "scale": scale}
            new |= {"weight_decay": 0.0} if single else {}
            groups.setdefault((scale, single), new)["params"].append(parameter)
        return list(groups.values())


def _depths(module: nn.Module) -> Iterator[tuple[nn.Parameter, int]]:
    """Yield the weights of pretrained encoders in a module, and the layers above each."""
    for encoder in module.modules():
        if any(base.__name__ == "PreTrainedModel" for base in type(encoder).__mro__):
            config: Any = encoder.config
            layers = int(getattr(config, "num_hidden_layers", 0))
            for name, parameter in encoder.named_parameters():
                if match := LAYER.search(f".{name}"):
                    yield parameter, layers - 1 - int(match[1])
                else:
                    yield parameter, layers if "embed" in name else 0


class AdaptiveOptimizer(TensorOptimizer):
    """Adam or one of its kin, which also makes torch's steps for the parameters of thinc layers.

    Of the settings, which are those of `adam`, only the learning rate may change in training.
    `name` is a key of `STEPS`.
    """

    def __init__(
        self,
        name: str,
        learn_rate: Rate,
        beta1: float,
        beta2: float,
        eps: float,
        use_averages: bool,
        weight_decay: float,
        rates: Mapping[str, float] | None = None,
        layer_decay: float = 1.0,
    ):
        with naming(name):
            _check(learn_rate, weight_decay)
            check_rates(below_one=True, beta1=beta1, beta2=beta2)
            check_amounts(eps=eps)
            grouped = rates is not None or layer_decay != 1.0
            self.rates = Rates(rates or {}, layer_decay) if grouped else None
        betas = beta1, beta2
        make = partial(STEPS[name], lr=0.0, betas=betas, eps=eps, weight_decay=weight_decay)
        super().__init__(make, learn_rate, use_averages=use_averages, beta1=0.0, beta2=0.0)
        self.by_array: dict[tuple[int, str], torch.optim.Optimizer] = {}

    def make_for(self, module: nn.Module) -> torch.optim.Optimizer:
        """As in the base class, with the groups of `rates`."""
        if self.rates is None:
            return super().make_for(module)
        return self.make(self.rates.groups(module))

    def step_schedules(self) -> None:
        """As in thinc; after the first update, a warning names patterns that count for nothing."""
        super().step_schedules()
        if self.rates is None or not self.rates.used:  # as in a training that continues
            return
        for pattern in self.rates.rates:
            if pattern not in self.rates.used and pattern != "*":
                self.rates.used.add(pattern)  # so that it is named once
                warn(
                    f"rates: the pattern {pattern!r} counts for no parameter; correct it, or put "
                    "it before the patterns that match the same",
                    stacklevel=2,
                )

    def __call__(
        self, key: tuple[int, str], weights: Any, gradient: Any, *, lr_scale: float = 1.0
    ) -> tuple[Any, Any]:
        """Make the same step for a parameter of a thinc layer, whose memory torch shares."""
        optimizer = self.by_array.get(key)
        if optimizer is None:
            optimizer = self.by_array[key] = self.make([nn.Parameter(xp2torch(weights))])
        (group,) = optimizer.param_groups
        if self.rates is not None:
            # The names of the parameters of thinc's own layers have no dots.
            lr_scale *= self.rates.factor(key[1], pretrained="." in key[1])
            if weights.ndim < 2:
                group["weight_decay"] = 0.0
        (parameter,) = group["params"]
        parameter.data, parameter.grad = xp2torch(weights), xp2torch(gradient)
        group["lr"] = lr_scale * self.learn_rate
        optimizer.step()
        # thinc then updates its averages and clears the gradient; a learning rate of 0 keeps the
        # weights as they are.
        return super().__call__(key, weights, gradient, lr_scale=0.0)


def adam(
    learn_rate: Rate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    use_averages: bool = False,
    weight_decay: float = 0.0,
    rates: dict[str, float] | None = None,
    layer_decay: float = 1.0,
) -> AdaptiveOptimizer:
    """Build the optimizer `Adam.v1` (Kingma & Ba 2015), as in torch.optim.Adam.

    With gradient g, and m and v the moving averages of g and g² with beta1 and beta2, the t-th
    update is

        w <- w - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).

    thinc's Adam.v1 differs: it adds eps to sqrt(v), before the correction. Kitaev2018 (appendix A)
    uses Adam; its code has beta2 0.98, eps 1e-9 and a learning rate of 8e-4. Gradients are not
    clipped here; see `max_grad_norm` of the component.

    Args:
        learn_rate: a float, or a schedule with a rate for each update.
        beta1: decay of the average of gradients.
        beta2: decay of the average of squared gradients.
        eps: a small number that is added to the divisor.
        use_averages: whether to evaluate and save a moving average of the weights.
        weight_decay: factor by which the weights are added to their gradients (L2
            regularization).
        rates: factors of the learning rate by pattern, such as {"pretrained": 1.0, "*": 100.0}: the
            first one that a parameter matches counts. "pretrained" stands for the weights of a
            pretrained encoder: that of `Pretrained.v1`, or a torch module of another package, such
            as spacy-transformers. Other patterns, with * and ?, are for the class of a module and
            the name of a parameter in it, such as "LabelPair.weight". With rates, biases and the
            weights of norms do not decay.
        layer_decay: a factor for each layer that is between a weight of `Pretrained.v1` and the
            output of its encoder, so that lower layers change less (Howard and Ruder 2018, section
            3.2); 1 for none.

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
    return AdaptiveOptimizer(
        "Adam.v1", learn_rate, beta1, beta2, eps, use_averages, weight_decay, rates, layer_decay
    )


def adamw(
    learn_rate: Rate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    use_averages: bool = False,
    weight_decay: float = 0.01,
    rates: dict[str, float] | None = None,
    layer_decay: float = 1.0,
) -> AdaptiveOptimizer:
    """Build the optimizer `AdamW.v1`: Adam with decoupled weight decay, as in torch.optim.AdamW.

    Each update first multiplies the weights by 1 - lr · weight_decay, then makes the step of `adam`
    (Loshchilov & Hutter 2019, Algorithm 2).

    Args:
        learn_rate, beta1, beta2, eps, use_averages, rates, layer_decay: as in `adam`.
        weight_decay: share of the weights, times the rate, that an update removes. It thereby
            draws the vectors that `WordEmbed.v1` learns back to the pretrained ones.

    Raises:
        InputError: if a setting has a value that is not possible.

    Examples:
        >>> adamw(learn_rate=0.002, weight_decay=0.1).learn_rate
        0.002
    """
    return AdaptiveOptimizer(
        "AdamW.v1", learn_rate, beta1, beta2, eps, use_averages, weight_decay, rates, layer_decay
    )


def nadam(
    learn_rate: Rate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    use_averages: bool = False,
    weight_decay: float = 0.0,
) -> AdaptiveOptimizer:
    """Build the optimizer `Nadam.v1`: Adam with Nesterov momentum (Dozat 2016), as torch's NAdam.

    With the terms of `adam` and mu_t = beta1 (1 - 0.96^(0.004 t) / 2), the t-th update is

        w <- w - lr ((1 - mu_t) g / (1 - Π_{i≤t} mu_i)
                     + mu_{t+1} m / (1 - Π_{i≤t+1} mu_i)) / (sqrt(v / (1 - beta2^t)) + eps).

    Li2019 (section 5.2) names it without settings; the defaults are those of the authors' code.

    Args:
        learn_rate, beta1, beta2, use_averages, weight_decay: as in `adam`.
        eps: a small number that is added to the divisor; Keras has 1e-7.

    Examples:
        >>> nadam(learn_rate=0.002).learn_rate
        0.002
    """
    return AdaptiveOptimizer("Nadam.v1", learn_rate, beta1, beta2, eps, use_averages, weight_decay)


def _check(learn_rate: Rate, weight_decay: float) -> None:
    check_amounts("it must be 0 for none, or more", weight_decay=weight_decay)
    if isinstance(learn_rate, (Real, str)):  # and no schedule
        check_amounts("it must be 0 or more, or a schedule", learn_rate=cast(float, learn_rate))


@dataclass(frozen=True)
class EqualShares:
    """The decay of an average in which all updates after the first `start` count alike.

    Until then, the average is the present weights.
    """

    start: int

    def __call__(self, updates: int) -> float:
        """The share of the average that stays in the update of this number, counted from 1."""
        counted = max(1, updates - self.start)
        return (counted - 1) / counted


def stochastic_weight_averaging(optimizer: Optimizer, start: int) -> TensorOptimizer:
    """Build the optimizer `SWA.v1`, which averages the weights of the later part of a training.

    After `start` updates, it keeps the mean of the weights of all updates that follow, each with
    the same share. Evaluations score this mean, and it is saved. Training continues with the
    current weights (Izmailov2018, Algorithm 1, with a cycle of one update). Evaluations before that
    score the present weights. `use_averages` of the optimizer has no effect.

    Izmailov2018 keeps the learning rate constant, or lets it rise and fall in cycles, while it
    averages. benchmarks/recipes compares this with a rate that comes down to 0.

    Args:
        optimizer: one of the optimizers of spacy-psa, which makes the steps and now averages.
        start: number of updates before the first one that counts, for instance three quarters of
            `training.max_steps`.

    Raises:
        InputError: if `start` is below 0, or the optimizer is not one of spacy-psa's.

    Examples:
        >>> optimizer = stochastic_weight_averaging(sgd(1.0, momentum=0.0), start=1)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.zeros_(module.weight)
        >>> for _ in range(3):  # the weight becomes -1, -2 and -3
        ...     module.weight.grad = torch.ones(1, 1)
        ...     optimizer.update_module(0, module)
        >>> optimizer.averages[0, "weight"].item()
        -2.5
    """
    with naming("SWA.v1"):
        check_sizes(least=0, start=start)
    if not isinstance(optimizer, TensorOptimizer):
        raise InputError(
            f"SWA.v1: the optimizer is a {type(optimizer).__module__}.{type(optimizer).__name__}: "
            "use one of spacy-psa, such as spacy-psa.AdamW.v1"
        )
    optimizer.averages = {}
    optimizer.average_decay = EqualShares(start)
    return optimizer
