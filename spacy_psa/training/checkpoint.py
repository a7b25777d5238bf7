"""Everything that a training needs to continue as if it had never stopped, in one file."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy
import torch
from spacy.language import Language
from thinc.api import Model, Optimizer, get_current_ops, xp2torch
from torch import nn

from spacy_psa.bridge.encoder_weights import without_frozen_encoders
from spacy_psa.bridge.optimizer import TensorOptimizer
from spacy_psa.corpora.atomic import atomic_path, sync
from spacy_psa.errors import InputError
from spacy_psa.training.optimizers import AdaptiveOptimizer

FORMAT = 1
KEPT = 2
FOLDER = "checkpoints"
FINISHED = "finished.json"
KEYED = ("mom1", "mom2", "averages", "nr_update", "last_seen")  # of a thinc optimizer


class Checkpoints:
    """The checkpoints of one training, in OUTPUT/checkpoints; the last two are kept.

    A checkpoint is one file. It is written under another name, synchronised with the disk and then
    renamed, so that a kill or a full disk at any moment leaves the one before.
    """

    def __init__(self, output: Path):
        self.folder = output / FOLDER

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write the checkpoint of a step and remove all but the last two."""
        path = self.folder / f"step-{step:09}.pt"
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            _save({"format": FORMAT, "step": step, **state}, file)
        sync(self.folder)
        for old in [*self._files()[:-KEPT], *self.folder.glob(".step-*.tmp")]:
            old.unlink()

    def load(self) -> dict[str, Any] | None:
        """The last checkpoint that can be read; None if there is none.

        Raises:
            InputError: there are checkpoints, but none can be read, or they are of a newer
                version.
        """
        files = self._files()
        for path in reversed(files):
            try:
                state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            except Exception:
                continue
            if state["format"] != FORMAT:
                raise InputError(
                    f"{path}: is a checkpoint of format {state['format']}, but this version reads "
                    f"format {FORMAT}: resume with the version that wrote it"
                )
            return state
        if files:
            raise InputError(
                f"{self.folder}: no checkpoint can be read: remove the folder to start again"
            )
        return None

    @property
    def finished(self) -> dict[str, Any] | None:
        """The `identity` of the training that has come to its end; None if none has."""
        try:
            identity: dict[str, Any] = json.loads((self.folder / FINISHED).read_text("utf8"))
        except (OSError, ValueError):
            return None
        return identity

    def finish(self, identity: dict[str, Any]) -> None:
        """Note which training has come to its end, and remove all checkpoints.

        If the note cannot be written, the checkpoints stay.
        """
        with atomic_path(self.folder / FINISHED) as temporary:
            temporary.write_text(json.dumps(identity), encoding="utf8")
        self._remove_files()

    def remove(self) -> None:
        """Remove all checkpoints, and the note on a training that has come to its end."""
        (self.folder / FINISHED).unlink(missing_ok=True)
        self._remove_files()

    def _remove_files(self) -> None:
        for path in [*self._files(), *self.folder.glob(".step-*.tmp")]:
            path.unlink()

    def _files(self) -> list[Path]:
        named = re.compile(r"step-\d+\.pt")
        return sorted(p for p in self.folder.glob("step-*.pt") if named.fullmatch(p.name))


def _save(state: dict[str, Any], file: IO[bytes]) -> None:
    """Write a state; a full disk is an OSError, which `torch.save` hides behind its own error."""
    try:
        torch.save(state, file)
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise


def get_random_states() -> dict[str, Any]:
    """The states of Python's, numpy's and torch's generators, on the CPU and on each GPU.

    They hold only what `torch.load(weights_only=True)` reads.
    """
    name, keys, position, has_gauss, gauss = numpy.random.get_state()
    return {
        "python": random.getstate(),
        "numpy": (name, torch.from_numpy(numpy.asarray(keys).astype("int64")), position),
        "numpy_gauss": (int(has_gauss), float(gauss)),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """Set all generators to states; those of GPUs are set where there are as many GPUs."""
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, keys, position = states["numpy"]
    numpy.random.set_state((name, keys.numpy().astype("uint32"), position, *states["numpy_gauss"]))
    torch.set_rng_state(states["torch"])
    if len(states["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(states["cuda"])


def training_state(nlp: Language, optimizer: Optimizer) -> dict[str, Any]:
    """The weights of a pipeline, the state of its optimizer and of all random generators.

    Word vectors and frozen encoders are left out, since training does not change them.
    """
    with without_frozen_encoders():
        pipeline = nlp.to_bytes(exclude=["vectors"])
    return {
        "pipeline": pipeline,
        "extra": {name: attr.state_dict() for name, attr in _stateful_attributes(nlp)},
        "optimizer": optimizer_state(nlp, optimizer),
        "random": get_random_states(),
    }


def restore_training(nlp: Language, optimizer: Optimizer, state: dict[str, Any]) -> None:
    """Set a pipeline, its optimizer and all random generators to a `training_state`."""
    nlp.from_bytes(state["pipeline"], exclude=["vectors"])
    for name, attribute in _stateful_attributes(nlp):
        attribute.load_state_dict(state["extra"][name])
    load_optimizer_state(nlp, optimizer, state["optimizer"])
    set_random_states(state["random"])


def optimizer_state(nlp: Language, optimizer: Optimizer) -> dict[str, Any]:
    """The state of an optimizer: moments, averages, counts, and those of torch's optimizers.

    thinc keys them by numbers that are new in each process. Here they are keyed by the
    component and by the place of the node in its model.
    """
    nodes, shims = nodes_by_place(nlp), _shims(nlp)
    node_at = {node.id: place for place, node in nodes.items()}
    shim_at = {shim.id: place for place, shim in shims.items()}

    def place_of(number: int, name: str) -> str | None:
        # A node and a shim may have the same number; only the node has a parameter so named.
        place = node_at.get(number)
        if place is not None and name in nodes[place].param_names:
            return place
        return shim_at.get(number)

    def by_place(held: dict[Any, Any] | None) -> dict[str, Any] | None:
        if held is None:
            return None
        values = {(place_of(*key), key[1]): _to_torch(value) for key, value in held.items()}
        return {f"{place}:{name}": value for (place, name), value in values.items() if place}

    state: dict[str, Any] = {key: by_place(getattr(optimizer, key)) for key in KEYED}
    state["settings"] = {name: getattr(optimizer, name) for name in optimizer.schedules}
    if isinstance(optimizer, TensorOptimizer):
        modules = optimizer.by_module
        state["modules"] = {shim_at[n]: modules[n].state_dict() for n in modules if n in shim_at}
    if isinstance(optimizer, AdaptiveOptimizer):
        arrays = {(place_of(*key), key[1]): held for key, held in optimizer.by_array.items()}
        state["arrays"] = {
            f"{place}:{name}": held.state_dict() for (place, name), held in arrays.items() if place
        }
    return state


def load_optimizer_state(nlp: Language, optimizer: Optimizer, state: dict[str, Any]) -> None:
    """Set an optimizer to an `optimizer_state` of the same pipeline.

    Its schedules are not set: the training loop steps them as often as before.
    """
    shims = _shims(nlp)
    holders: dict[str, Any] = {**nodes_by_place(nlp), **shims}
    for key in KEYED:
        held = getattr(optimizer, key)
        if held is not None:
            held.clear()
            for at, value in (state[key] or {}).items():
                place, name = at.rsplit(":", 1)
                held[holders[place].id, name] = _like(holders[place], value)
    for name, value in state["settings"].items():
        setattr(optimizer, name, value)
    if isinstance(optimizer, TensorOptimizer):
        optimizer.by_module.clear()
        for place, saved in state["modules"].items():
            made = optimizer.make_for(shims[place].module)
            made.load_state_dict(saved)
            optimizer.by_module[shims[place].id] = made
    if isinstance(optimizer, AdaptiveOptimizer):
        optimizer.by_array.clear()
        for at, saved in state["arrays"].items():
            place, name = at.rsplit(":", 1)
            holder = holders[place]
            if isinstance(holder, Model):
                held = nn.Parameter(xp2torch(holder.get_param(name)))
            else:  # a torch module of another package
                held = holder._model.get_parameter(name)
            made = optimizer.make([held])
            made.load_state_dict(saved)
            optimizer.by_array[holders[place].id, name] = made


def models(nlp: Language) -> dict[str, Model]:
    """The models of all components that have one, by the name of the component."""
    held = {name: getattr(pipe, "model", None) for name, pipe in nlp.components}
    return {name: model for name, model in held.items() if isinstance(model, Model)}


def nodes_by_place(nlp: Language) -> dict[str, Model]:
    """The nodes of all models, by component and number."""
    return {
        f"{name}/{i}": node
        for name, model in models(nlp).items()
        for i, node in enumerate(model.walk())
    }


def _shims(nlp: Language) -> dict[str, Any]:
    """The shims of all nodes, by the place of the node and number."""
    nodes = nodes_by_place(nlp).items()
    return {f"{place}/{i}": shim for place, node in nodes for i, shim in enumerate(node.shims)}


def _stateful_attributes(nlp: Language) -> Iterator[tuple[str, Any]]:
    """Attributes of nodes that change in training and are not saved with the model."""
    for place, node in nodes_by_place(nlp).items():
        for name, value in node.attrs.items():
            if hasattr(value, "load_state_dict"):
                yield f"{place}:{name}", value


def _to_torch(value: Any) -> Any:
    """A number as it is, else (whether it is a thinc array, the tensor)."""
    if isinstance(value, (int, float)):
        return value
    is_tensor = isinstance(value, torch.Tensor)
    return not is_tensor, value.clone() if is_tensor else xp2torch(value).clone()


def _like(holder: Any, value: Any) -> Any:
    """A value of `_to_torch`, as the holder's optimizer keeps it."""
    if isinstance(value, (int, float)):
        return value
    is_array, tensor = value
    if is_array:
        ops = holder.ops if isinstance(holder, Model) else get_current_ops()
        return ops.asarray(tensor.numpy())
    module = getattr(holder, "_model", None)
    if isinstance(module, nn.Module):
        return tensor.to(next(iter(module.parameters())).device)
    return tensor
