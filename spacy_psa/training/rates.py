"""Learning rates by group of parameters, for pretrained encoders under new layers."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from spacy_psa.errors import check_amounts, check_rates

PRETRAINED = "pretrained"
"""The pattern of the weights of pretrained encoders."""
LAYER = re.compile(r"\.(?:layers?|blocks?|h)\.(\d+)\.")


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

    Raises:
        InputError: if a factor is below 0 or no number, or `layer_decay` not from 0 to 1.

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

    def factor(self, name: str, pretrained: bool = False) -> float:
        """Return the factor of a parameter, without that of its layer."""
        for pattern, factor in self.rates.items():
            if pretrained if pattern == PRETRAINED else fnmatchcase(name, pattern):
                return factor
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
