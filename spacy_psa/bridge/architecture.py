"""Registered architectures that have the settings of a torch module."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any

import torch
from thinc.api import Model
from torch import nn

from spacy_psa.bridge.layers import FORMER_NAMES, torch_layer
from spacy_psa.errors import InputError, SettingError, check_sizes
from spacy_psa.modules.initialization import WithoutDraws

Architecture = Callable[..., Model]


def encoder(
    module: type[nn.Module],
    *,
    name: str = "",
    renamed: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
    input_width: str = "",
    former_names: Mapping[str, str] | None = None,
) -> Architecture:
    """Make the architecture `NAME.v1` of an encoder: a function with the settings of its module.

    The function has the signature, defaults, checks and docstring of the module, so mistakes in a
    config show before there are weights. It returns Model[List[Floats2d], List[Floats2d]];
    see `torch_layer`.

    Args:
        module: a torch module. Its first parameter is `input_width`, the others are settings with
            defaults, and its attribute `output_width` is the width of the output.
        name: NAME; the name of the module if it is empty.
        renamed: settings with another name in a config, as {name in a config: name in the
            module}.
        defaults: the defaults of the architecture that are not the module's.
        fixed: settings of the module that a config cannot change.
        input_width: for a module whose output is as wide as its input, the name under which a
            config may set that width, which the layers above need before initialization.
        former_names: other names of settings in models saved by version 0.1; see `TorchShim`. The
            names in `renamed` are added.

    Examples:
        >>> from spacy_psa.modules.idcnn import IDCNN
        >>> idcnn = encoder(IDCNN, renamed={"kernels": "filters", "size": "kernel_size"})
        >>> model = idcnn(kernels=50)
        >>> model.get_dim("nO")
        50
        >>> idcnn(size=2)
        Traceback (most recent call last):
        spacy_psa.errors.InputError: IDCNN.v1: size is 2: it must be odd
    """
    name = name or module.__name__
    renamed = dict(renamed or {})
    former = {**FORMER_NAMES, **renamed, **(former_names or {})}
    extra = [optional(input_width, int)] if input_width else []

    def build(settings: dict[str, Any]) -> Model:
        given = settings.pop(input_width, None)
        check_sizes(**{input_width: given})
        settings |= fixed or {}
        widths = [given or 1, given or 2]
        outputs = {
            int(on_meta(module, input_width=width, **settings).output_width)  # type: ignore[arg-type]
            for width in (widths if input_width else widths[:1])
        }
        if len(outputs) > 1:
            raise InputError(
                f"the output is as wide as the input: set `{input_width}` to the width of `embed`"
            )
        layer = torch_layer(module.__name__, module, settings, former)
        layer.set_dim("nO", outputs.pop())
        return layer

    hidden = ("input_width", *(fixed or ()))
    return architecture(
        module, build, name=name, renamed=renamed, defaults=defaults, hidden=hidden, extra=extra
    )


def architecture(
    module: type[nn.Module],
    build: Callable[..., Model],
    *,
    name: str,
    renamed: Mapping[str, str],
    defaults: Mapping[str, Any] | None = None,
    hidden: Sequence[str] = (),
    extra: Sequence[Parameter] = (),
) -> Architecture:
    """Make a registered function `NAME.v1` with the settings of a module and further ones.

    Its errors name the architecture, and the setting as a config has it.

    Args:
        build: called with a dict of the settings, by their names in the module and in `extra`;
            returns the model.
        renamed: settings with another name in a config; see `encoder`.
        defaults: the defaults of the architecture that are not the module's.
        hidden: parameters of the module that are not settings.
        extra: settings that are not in the module.
    """
    in_config = {inside: outside for outside, inside in renamed.items()}
    own = [
        parameter.replace(
            name=in_config.get(key, key),
            kind=Parameter.KEYWORD_ONLY,
            default=(defaults or {}).get(key, parameter.default),
        )
        for key, parameter in inspect.signature(module).parameters.items()
        if key not in hidden
    ]
    signature = Signature([*own, *extra], return_annotation=Model)

    def make(*args: Any, **kwargs: Any) -> Model:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        settings = {renamed.get(key, key): plain(value) for key, value in given.arguments.items()}
        try:
            return build(settings)
        except SettingError as error:
            error = SettingError(
                in_config.get(error.setting, error.setting), error.value, error.advice
            )
            raise InputError(f"{name}.v1: {error}") from None
        except InputError as error:
            raise InputError(f"{name}.v1: {error}") from None

    make.__signature__ = signature  # type: ignore[attr-defined]
    make.__name__ = make.__qualname__ = name
    make.__doc__ = module.__doc__
    make.module = module  # type: ignore[attr-defined]
    return make


def optional(name: str, kind: Any) -> Parameter:
    """Make a setting that may be left out."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind | None)


def setting(name: str, default: Any) -> Parameter:
    """Make a setting with a default, which also determines its type."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=type(default))


def on_meta(module: Callable[..., nn.Module], **settings: Any) -> nn.Module:
    """Make a module without memory for its weights, and without a draw from a random generator."""
    try:
        with torch.device("meta"), WithoutDraws():  # draws on meta would import torch._dynamo
            return module(**settings)
    except (RuntimeError, TypeError, ValueError) as error:
        raise error if isinstance(error, InputError) else InputError(str(error)) from error


def plain(value: Any) -> Any:
    """Convert a setting to a form that can be saved: a tuple to a list."""
    return list(value) if isinstance(value, tuple) else value
