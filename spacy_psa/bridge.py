"""Where torch meets thinc: a torch module as a layer of a thinc model.

One node, one shim, built once: the shim holds a module class and the arguments
that it was or will be made with. Weights and arguments travel together, so a
node can be loaded before it was ever initialized. Sentences cross as the flat
ragged batches of `spacy_psa.ragged`.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy
import torch
from thinc.api import Model, Optimizer, get_torch_default_device, torch2xp, xp2torch
from thinc.shims.shim import Shim
from thinc.types import Floats2d
from torch import Tensor, nn

from spacy_psa.errors import InputError
from spacy_psa.modules.int8 import quantize
from spacy_psa.training.optimizers import TensorOptimizer


class TorchShim(Shim):
    """A torch module inside a thinc model; `None` until `build` or `from_bytes`.

    make: a module class (or another importable callable), so that the shim pickles.
    arguments: keyword arguments for it that are known before initialization.
    int8: whether the weights were rounded to 8 bits (`quantize`), to annotate alone.
    """

    def __init__(self, make: Callable[..., nn.Module], arguments: dict[str, Any]):
        super().__init__(None, config=arguments)
        self.make = make
        self.int8 = False

    @property
    def module(self) -> nn.Module:
        """The module. Raises ValueError before initialization."""
        if self._model is None:
            raise ValueError(
                f"{self.make.__name__} has no weights yet: initialize the pipeline "
                "(nlp.initialize, or `spacy train`) or load a trained one."
            )
        return self._model

    @property
    def device(self) -> torch.device:
        tensors = itertools.chain(self.module.parameters(), self.module.buffers())
        tensor = next(tensors, None)
        return get_torch_default_device() if tensor is None else tensor.device

    def build(self, **arguments: Any) -> None:
        """Make the module, with the arguments that initialization found out."""
        self.cfg.update(arguments)
        self._model = self.make(**self.cfg).to(get_torch_default_device())

    def quantize(self) -> None:
        """Round the weights of linear layers and LSTMs to 8 bits, for annotation on a CPU."""
        quantize(self.module)
        self.int8 = True

    def __call__(
        self, inputs: tuple[Tensor, ...], is_train: bool
    ) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor | None, ...]]]:
        """Run the module on tensors; the callback gives the gradient of each float input."""
        if not is_train:
            self.module.eval()
            with torch.inference_mode():
                return self.module(*inputs), _no_gradient
        if self.int8:
            raise InputError(
                "weights in int8 cannot be trained: train the model that `spacy-psa quantize` took"
            )
        self.module.train()
        with torch.enable_grad():
            output = self.module(*inputs)

        def backprop(d_output: Tensor) -> tuple[Tensor | None, ...]:
            output.backward(d_output)
            return tuple(x.grad for x in inputs)

        return output, backprop

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update every parameter that has a gradient: in one step where the optimizer
        is ours, else one by one."""
        if isinstance(optimizer, TensorOptimizer):
            optimizer.update_module(self.id, self.module)
        else:
            for name, p in self.module.named_parameters():
                if p.grad is not None:
                    # Flat, since thinc's optimizers cannot take 0-d parameters.
                    weights, _ = optimizer(
                        (self.id, name),
                        torch2xp(p.data.view(-1)),  # type: ignore[arg-type]
                        torch2xp(p.grad.contiguous().view(-1)),  # type: ignore[arg-type]
                    )
                    p.data.copy_(xp2torch(weights, device=p.device).view_as(p))
        self.module.zero_grad(set_to_none=True)

    @contextlib.contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Use averaged weights, keyed as `finish_update` keys them, within the context."""
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
        if self._model is not None:
            self._model.to("cpu" if device_type == "cpu" else f"cuda:{device_id}")

    def to_bytes(self) -> bytes:
        buffer = BytesIO()
        state = None if self._model is None else self._model.state_dict()
        message = {"make": self.make.__name__, "arguments": self.cfg, "state": state}
        torch.save({**message, "int8": True} if self.int8 else message, buffer)
        return buffer.getvalue()

    def from_bytes(self, data: bytes) -> "TorchShim":
        """Load arguments and weights. Raises InputError, and changes nothing, where
        the bytes are damaged or belong to another architecture."""
        name = self.make.__name__
        try:
            with ZipFile(BytesIO(data)) as archive:  # torch does not look at the check sums
                if damaged := archive.testzip():
                    raise ValueError(f"{damaged} does not match its check sum")
            message = torch.load(
                BytesIO(data), map_location=get_torch_default_device(), weights_only=True
            )
            made, arguments, state = message["make"], message["arguments"], message["state"]
            int8 = bool(message.get("int8"))
        except Exception as error:
            raise InputError(
                f"The weights of {name} cannot be read ({_first_line(error)}): "
                "the model's files are damaged, copy or train them again."
            ) from error
        if made != name:
            raise InputError(
                f"The weights belong to {made}, not to {name}: "
                "the model's config.cfg does not fit its weights."
            )
        module = None
        if state is not None:
            try:
                module = self.make(**arguments)
                if int8:
                    quantize(module)
                module.load_state_dict(state)
            except (RuntimeError, TypeError) as error:
                raise InputError(
                    f"The weights do not fit {name} ({_first_line(error)}): "
                    "the model's config.cfg does not fit its weights."
                ) from error
            module.to(get_torch_default_device())
        self.cfg, self._model, self.int8 = arguments, module, int8
        return self


def clip_gradients(model: Model, max_norm: float) -> float:
    """Scale all gradients of a model, torch's and thinc's, so that their joint L2 norm
    is at most `max_norm` (J section 5.2: 5.0). Returns the norm before."""
    gradients = []
    for node in model.walk():
        for shim in node.shims:
            module = getattr(shim, "_model", None)
            if isinstance(module, nn.Module):
                gradients += [p.grad for p in module.parameters() if p.grad is not None]
        gradients += [xp2torch(node.get_grad(n)) for n in node.param_names if node.has_grad(n)]
    if not gradients:
        return 0.0
    norm = float(nn.utils.get_total_norm(gradients))
    if norm > max_norm:
        torch._foreach_mul_(gradients, max_norm / norm)
    return norm


def torch_layer(name: str, make: Callable[..., nn.Module], **arguments: Any) -> Model:
    """A module `(x: (N, nI), lengths: (B,)) -> (N, nO)` as Model[List[Floats2d], List[Floats2d]].

    make: called with `width=nI` and `arguments`; where the node's nO is known by then
    and `make` is a head, also with `labels=nO` (see `head_layer`). The module says its
    output width by `out_width`. Where it does not give one row for each that it takes, its
    `out_lengths(lengths)` says how many: (B,) int64 -> (B,) int64. Empty arrays pass through.
    """
    return Model(
        name,
        _forward,
        init=_init_encoder,
        dims={"nI": None, "nO": None},
        shims=[TorchShim(make, arguments)],
    )


def head_layer(name: str, make: Callable[..., nn.Module], **arguments: Any) -> Model:
    """Like `torch_layer` for a head: its nO, the number of labels, must be set before
    initialization, and `make` is called with `width=nI, labels=nO`."""
    model = torch_layer(name, make, **arguments)
    model.init = _init_head
    return model


def shim_of(model: Model) -> TorchShim:
    """The shim of a node that `torch_layer` or an embedder made."""
    shim = model.shims[0]
    assert isinstance(shim, TorchShim)
    return shim


def run_shim(model: Model, inputs: tuple[Tensor, ...], is_train: bool) -> tuple[Any, Callable]:
    """The module of a node on tensors, its output as an array of the node's ops, and a
    callback from the output's gradient to the inputs' gradients (tensors or None)."""
    shim = shim_of(model)
    output, torch_backprop = shim(inputs, is_train)

    def backprop(d_output: Any) -> tuple[Tensor | None, ...]:
        return torch_backprop(xp2torch(d_output, device=shim.device))

    return torch2xp(output.detach()), backprop


def _forward(
    model: Model, X: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats2d]]]:
    shim = shim_of(model)
    sizes = [len(x) for x in X]
    if not sum(sizes):
        width = model.get_dim("nO") if model.has_dim("nO") else 0
        empty = [model.ops.alloc2f(0, width) for _ in X]
        return empty, lambda dY: [model.ops.alloc2f(*x.shape) for x in X]
    # Empty arrays of a transformer's listener have no width.
    filled = [x for x in X if len(x)]
    alone = len(filled) == 1 and not is_train
    rows = filled[0] if alone else model.ops.xp.concatenate(filled)
    flat = xp2torch(rows, requires_grad=is_train, device=shim.device)
    lengths = torch.tensor([size for size in sizes if size])
    output, torch_backprop = shim((flat, lengths), is_train)
    ends = numpy.cumsum(sizes)[:-1]
    Y = model.ops.xp.split(torch2xp(output.detach()), _out_ends(shim.module, sizes, lengths))

    def backprop(dY: list[Floats2d]) -> list[Floats2d]:
        d_output = xp2torch(model.ops.xp.concatenate(dY), device=shim.device)
        d_flat = torch_backprop(d_output)[0]
        assert d_flat is not None
        return model.ops.xp.split(torch2xp(d_flat), ends)

    return Y, backprop


def _out_ends(module: nn.Module, sizes: list[int], lengths: Tensor) -> Any:
    """Where the rows of each sentence but the last end in the module's output."""
    out_lengths = getattr(module, "out_lengths", None)
    if out_lengths is None:
        return numpy.cumsum(sizes)[:-1]
    out = numpy.zeros(len(sizes), dtype="int64")
    out[numpy.array(sizes) > 0] = out_lengths(lengths).numpy()
    return numpy.cumsum(out)[:-1]


def _init_encoder(model: Model, X: Any = None, Y: Any = None) -> None:
    _set_width(model, X)
    shim = shim_of(model)
    if shim._model is None:
        shim.build(width=model.get_dim("nI"))
    model.set_dim("nO", int(shim.module.out_width))  # type: ignore[arg-type]


def _init_head(model: Model, X: Any = None, Y: Any = None) -> None:
    _set_width(model, X)
    shim = shim_of(model)
    if shim._model is None:
        shim.build(width=model.get_dim("nI"), labels=model.get_dim("nO"))


def _set_width(model: Model, X: Any) -> None:
    if X is not None:
        model.set_dim("nI", X[0].shape[1])


def _no_gradient(d_output: Tensor) -> tuple[Tensor | None, ...]:
    raise ValueError("There is nothing to backpropagate: the forward pass was a prediction.")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
