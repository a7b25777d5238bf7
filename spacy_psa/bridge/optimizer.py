"""Updates of the torch modules in a thinc model."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import torch
from thinc.api import Model, Optimizer, xp2torch
from torch import nn

from spacy_psa.errors import InputError

AVERAGE_CEILING = 0.9999  # thinc's own limit for the decay of averages


def warm_decay(updates: int) -> float:
    """The share of a moving average that stays in an update, thinc's rule: (1 + t) / (10 + t).

    Args:
        updates: t, the number of updates with this one.

    Examples:
        >>> warm_decay(8)
        0.5
    """
    return min((1.0 + updates) / (10.0 + updates), AVERAGE_CEILING)


class TensorOptimizer(Optimizer):
    """A thinc optimizer that updates a whole torch module in one step.

    To spaCy it is a thinc optimizer: schedules, averages and the parameters of thinc layers work as
    usual. The attribute `average_decay` computes the share of an average that stays in an update,
    by the number of the update. `clip_value` is the largest absolute value of each number in the
    gradients of a module; 0 for no limit.

    Args:
        make: makes a torch.optim.Optimizer for parameters. Its learning rate is set before each
            step.
        learn_rate: a float, or a schedule with a rate for each update.
        use_averages: whether to keep a moving average of the weights.
        **thinc_settings: further settings of thinc's optimizer, for the parameters of thinc
            layers.

    Examples:
        >>> from functools import partial
        >>> optimizer = TensorOptimizer(partial(torch.optim.SGD, lr=0.0), learn_rate=0.5)
        >>> module = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(module.weight)
        >>> module(torch.ones(1, 1)).sum().backward()  # a gradient of 1
        >>> optimizer.update_module(0, module)
        >>> module.weight.item()
        0.5
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
            learn_rate,  # type: ignore[arg-type]  # thinc accepts any iterable
            grad_clip=0.0,
            L2=0.0,
            use_averages=use_averages,
            **thinc_settings,
        )
        self.make = make
        self.average_decay: Callable[[int], float] = warm_decay
        self.clip_value = 0.0
        self.by_module: dict[int, torch.optim.Optimizer] = {}

    def make_for(self, module: nn.Module) -> torch.optim.Optimizer:
        """Make the optimizer of a module; a group of its parameters may have a "scale" of the rate.

        The first parameter of the module is the first of the first group.
        """
        return self.make(list(module.parameters()))

    def update_module(self, key: int, module: nn.Module) -> None:
        """Make one step for every parameter of a module that has a gradient.

        Args:
            key: a number for the module. Averages are kept by (key, name of the parameter), as
                thinc keeps its own.

        Raises:
            InputError: if the present learning rate is below 0, or no number.
        """
        if not self.learn_rate >= 0:
            raise InputError(
                f"the learning rate is {self.learn_rate}: correct the schedule, which must return "
                "0 or more"
            )
        first = next(module.parameters(), None)
        if first is None:  # torch refuses to optimize nothing
            return
        optimizer = self.by_module.get(key)
        if optimizer is None or optimizer.param_groups[0]["params"][0] is not first:
            optimizer = self.by_module[key] = self.make_for(module)
        if self.clip_value:
            gradients = [p.grad for p in module.parameters() if p.grad is not None]
            if gradients and gradients[0].device.type == "cuda":  # few launches
                nn.utils.clip_grad_value_(module.parameters(), self.clip_value, foreach=True)
            else:
                for gradient in gradients:  # in one pass; torch's own function makes two
                    gradient.clamp_(-self.clip_value, self.clip_value)
        for group in optimizer.param_groups:
            group["lr"] = self.learn_rate * group.get("scale", 1.0)
        optimizer.step()
        averages: dict[Any, Any] | None = self.averages
        if averages is not None:
            moved: dict[int, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
            for name, parameter in module.named_parameters():
                if not parameter.requires_grad:  # a frozen encoder stays as it is
                    continue
                self.nr_update[key, name] += 1
                if (key, name) not in averages:
                    averages[key, name] = torch.zeros_like(parameter.data)
                held, weights = moved.setdefault(self.nr_update[key, name], ([], []))
                held.append(averages[key, name])
                weights.append(parameter.data)
            for updates, (held, weights) in moved.items():  # in few launches on a GPU
                torch._foreach_lerp_(held, weights, 1.0 - self.average_decay(updates))

    def __call__(
        self, key: tuple[int, str], weights: Any, gradient: Any, *, lr_scale: float = 1.0
    ) -> tuple[Any, Any]:
        """Make a step for a parameter of a thinc layer, and average it by the rule of modules."""
        averages, self.averages = self.averages, None  # thinc would average by its own rule
        weights, gradient = super().__call__(key, weights, gradient, lr_scale=lr_scale)
        self.averages = averages
        if averages is not None and len(gradient):
            held = xp2torch(averages.setdefault(key, weights * 0))
            held.lerp_(xp2torch(weights), 1.0 - self.average_decay(self.nr_update[key]))
        return weights, gradient


def torch_modules(node: Model) -> list[nn.Module]:
    """Return the torch modules that a node holds, without those of the nodes below it."""
    return [shim._model for shim in node.shims if isinstance(shim._model, nn.Module)]


def clip_gradients(models: Iterable[Model], max_norm: float) -> None:
    """Scale all gradients of models, torch's and thinc's, to a limit of their joint L2 norm.

    Args:
        max_norm: the largest norm (Wei2020 section 5.2: 5.0).
    """
    gradients = []
    for node in chain.from_iterable(map(Model.walk, models)):
        for shim in node.shims:
            if isinstance(shim._model, nn.Module):
                gradients += [p.grad for p in shim._model.parameters() if p.grad is not None]
        for name in node.param_names:
            if node.has_grad(name):
                gradients.append(xp2torch(node.get_grad(name)))
    if not gradients:
        return
    norm = nn.utils.get_total_norm(gradients)
    if norm.device.type == "cpu":
        if float(norm) > max_norm:
            torch._foreach_mul_(gradients, max_norm / float(norm))
    else:
        scale_down(gradients, norm, max_norm)


def scale_down(gradients: list[torch.Tensor], norm: torch.Tensor, max_norm: float) -> None:
    """Scale gradients with a joint norm to a limit of it, without waiting for a GPU."""
    torch._foreach_mul_(gradients, (max_norm / norm).clamp(max=1.0))
