"""A torch module inside a thinc model, with its weights and settings."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from itertools import chain
from typing import Any
from zipfile import ZipFile
from zlib import crc32

import safetensors.torch
import torch
from thinc.api import Model, Optimizer, get_torch_default_device, torch2xp, xp2torch
from thinc.shims.shim import Shim
from torch import Tensor, nn

from spacy_psa.bridge.encoder_weights import put_together, raw, take_apart
from spacy_psa.bridge.optimizer import TensorOptimizer
from spacy_psa.errors import InputError
from spacy_psa.modules.initialization import WithoutDraws
from spacy_psa.modules.int8 import quantize, quantize_like

FORMAT = 4  # of the saved bytes; the first has no number, 3 has settings as JSON, 4 is safetensors

ZIP = b"PK\x03\x04"
"""The start of formats 1 to 3. The length of a header of safetensors may begin with "PK"."""

ENTRY = "spacy-psa"
"""The entry of the saved bytes that has all but the weights, as JSON."""


def tensors(module: nn.Module) -> list[Tensor]:
    """Return the parameters and buffers of a module; torch's iterators also make their names."""
    modules: list[nn.Module | None] = [module]
    every: list[Tensor | None] = []
    for each in modules:  # which grows
        if each is not None:
            every += (*each._parameters.values(), *each._buffers.values())
            modules += each._modules.values()
    return list(filter(torch.is_tensor, every))


class TorchShim(Shim):
    """Holds a torch module inside a thinc model.

    There is no module until `build` or `from_bytes` makes it. Settings and weights are saved
    together, so a model can be loaded that was never initialized.

    Args:
        make: a module class or another importable callable, so that the shim can be pickled.
        settings: the keyword arguments for `make` that are known before initialization.
        former_names: settings that have other names in models saved by version 0.1, as
            {former: present}.

    Attributes:
        cfg: the keyword arguments for `make`.
        int8: whether weights are rounded to 8 bits; such a model can only annotate.
    """

    def __init__(
        self,
        make: Callable[..., nn.Module],
        settings: dict[str, Any],
        former_names: Mapping[str, str] | None = None,
    ):
        super().__init__(None, config=settings)
        self.make = make
        self.former_names = dict(former_names or {})
        self.int8 = False

    @property
    def module(self) -> nn.Module:
        """The module.

        Raises:
            ValueError: before initialization.
        """
        if self._model is None:
            raise ValueError(
                f"{self.make.__name__} has no weights yet: initialize the pipeline "
                "(nlp.initialize, or `spacy train`) or load a trained one"
            )
        return self._model

    @property
    def device(self) -> torch.device:
        """The device of the module's weights; if it has none, the device of new modules."""
        module = self.module
        tensor = next(chain(module.parameters(), module.buffers()), None)
        return get_torch_default_device() if tensor is None else tensor.device

    def build(self, **settings: Any) -> None:
        """Make the module.

        Args:
            **settings: the settings that are known from initialization on, such as widths.
        """
        self.cfg.update(settings)
        self._model = self.make(**self.cfg).to(get_torch_default_device())

    def quantize(self) -> None:
        """Round the weights of large layers to 8 bits, for annotation on a CPU."""
        self.int8 = quantize(self.module) > 0

    def __call__(
        self, inputs: tuple[Tensor, ...], is_train: bool
    ) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor | None, ...]]]:
        """Run the module on tensors.

        Args:
            inputs: the arguments of the module.
            is_train: whether to prepare the backward pass.

        Returns:
            The output, and a callback from its gradient to the gradient of each input, which is
            None for an input without one.

        Raises:
            InputError: if a module with int8 weights is to be trained.
            ValueError: before initialization.
        """
        module = self.module
        if not is_train:
            if module.training:
                module.eval()
            with torch.inference_mode():
                return module(*inputs), no_gradient
        if self.int8:
            raise InputError(
                "int8 weights cannot be trained: train the model from before `spacy-psa quantize`"
            )
        if not module.training:
            module.train()
        with torch.enable_grad():
            output = module(*inputs)

        def backprop(d_output: Tensor) -> tuple[Tensor | None, ...]:
            if output.requires_grad:  # else no parameter has a part in it
                output.backward(d_output)
            return tuple([x.grad for x in inputs])

        return output, backprop

    def run(
        self, inputs: tuple[Tensor, ...], is_train: bool
    ) -> tuple[Any, Callable[[Any], tuple[Tensor | None, ...]]]:
        """Run the module as a call does, but the output and its gradient are arrays."""
        output, torch_backprop = self(inputs, is_train)

        def backprop(d_output: Any) -> tuple[Tensor | None, ...]:
            return torch_backprop(xp2torch(d_output, device=output.device))

        return torch2xp(output.detach()), backprop

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update every parameter that has a gradient, and clear the gradients.

        A `TensorOptimizer` updates all parameters in one step, another optimizer one by one.
        """
        module = self.module
        if isinstance(optimizer, TensorOptimizer):
            optimizer.update_module(self.id, module)
        else:
            for name, p in module.named_parameters():
                if p.grad is not None:
                    # Flat, since thinc's optimizers cannot update 0-d parameters.
                    weights, _ = optimizer(
                        (self.id, name),
                        torch2xp(p.data.view(-1)),  # type: ignore[arg-type]
                        torch2xp(p.grad.contiguous().view(-1)),  # type: ignore[arg-type]
                    )
                    p.data.copy_(xp2torch(weights, device=p.device).view_as(p))
        module.zero_grad(set_to_none=True)

    @contextlib.contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Use averaged weights within the context.

        Args:
            params: the averages, by the keys of `finish_update`.
        """
        named = [] if self._model is None else list(self._model.named_parameters())
        held = [(p, params[self.id, n]) for n, p in named if (self.id, n) in params]
        backup = [p.data.clone() for p, _ in held]
        for p, average in held:
            tensor = average if isinstance(average, Tensor) else xp2torch(average)
            p.data.copy_(tensor.view_as(p))
        try:
            yield
        finally:
            for (p, _), weights in zip(held, backup, strict=True):
                p.data.copy_(weights)

    def to_device(self, device_type: str, device_id: int) -> None:
        """Move the module to a device, if there is a module."""
        if self._model is not None:
            self._model.to("cpu" if device_type == "cpu" else f"cuda:{device_id}")

    def to_bytes(self) -> bytes:
        """Save settings and weights, as a file of safetensors."""
        state: dict[str, Any] = {}
        apart = None
        if self._model is not None:
            state, apart = take_apart(self._model, self._model.state_dict())
        # Tensors must not share memory in a file of safetensors.
        weights = {name: tensor.detach().cpu().clone() for name, tensor in state.items()}
        message: dict[str, Any] = {
            "format": FORMAT,
            "make": self.make.__name__,
            "arguments": self.cfg,
            "initialized": self._model is not None,
            "int8": self.int8,
        }
        if apart is not None:
            message["apart"] = apart
        # One entry, since the order of several is not always the same.
        text = json.dumps({**message, "sum": _check_sum(message, weights)})
        return safetensors.torch.save(weights, {ENTRY: text})

    def from_bytes(self, data: bytes) -> "TorchShim":
        """Load settings and weights.

        The precision stays that of the config, as weights do not depend on it. If loading fails,
        the shim stays as it was.

        Raises:
            InputError: if the bytes are damaged, or belong to another architecture.
        """
        name = self.make.__name__
        try:
            message = _read(data)
            made, settings, state = message["make"], message["arguments"], message["state"]
            settings = json.loads(settings) if isinstance(settings, str) else settings
            int8 = bool(message.get("int8"))
        except Exception as error:
            raise InputError(
                f"The weights of {name} cannot be read ({_first_line(error)}): "
                "the model's files are damaged; copy them again, or train again"
            ) from error
        if made != name:
            raise InputError(
                f"The weights belong to {made}, not to {name}: "
                "use the config.cfg that was saved with them"
            )
        if message.get("format", 1) > FORMAT:
            raise InputError(
                f"The weights of {name} were saved by a newer version of spacy-psa: "
                "install that version to load them"
            )
        if message.get("format") is None:
            settings = {self.former_names.get(key, key): settings[key] for key in settings}
        if "precision" in self.cfg:
            settings["precision"] = self.cfg["precision"]
        module = None
        if state is not None:
            state = put_together(self._model, state, message.get("apart"))
            try:
                with WithoutDraws():
                    module = self.make(**settings)
                if int8:
                    quantize_like(module, state)
                module.load_state_dict(state)
            except (RuntimeError, TypeError) as error:
                raise InputError(
                    f"The weights do not fit {name} ({_first_line(error)}): "
                    "use the config.cfg that was saved with them"
                ) from error
            module.to(get_torch_default_device())
        self.cfg, self._model, self.int8 = settings, module, int8
        return self


def shim_of(model: Model) -> TorchShim:
    """Return the shim of a node that `torch_layer` or an embedder made."""
    shim = model.shims[0]
    assert isinstance(shim, TorchShim)
    return shim


def _read(data: bytes) -> dict[str, Any]:
    """Read saved bytes, and check that they are not damaged."""
    if data.startswith(ZIP):
        return _read_torch(data)
    state = safetensors.torch.load(data)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    message = json.loads(header["__metadata__"][ENTRY])
    if message.pop("sum") != _check_sum(message, state):
        raise ValueError("the weights do not match their check sum")
    return {**message, "state": state if message["initialized"] else None}


def _check_sum(message: dict[str, Any], weights: Mapping[str, Tensor]) -> int:
    total = crc32(json.dumps(message).encode())
    for name, tensor in sorted(weights.items()):
        total = crc32(raw(tensor), crc32(name.encode(), total))
    return total


def _read_torch(data: bytes) -> dict[str, Any]:
    """Read what format 3 and earlier ones saved."""
    with ZipFile(BytesIO(data)) as archive:  # torch does not check the sums
        if damaged := archive.testzip():
            raise ValueError(f"{damaged} does not match its check sum")
    message: dict[str, Any] = torch.load(
        BytesIO(data), map_location=get_torch_default_device(), weights_only=True
    )
    return message


def no_gradient(d_output: Any) -> Any:
    """Raise the error of the backward pass of a prediction."""
    raise ValueError(
        "There is no gradient, because the forward pass was a prediction: call begin_update first"
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
