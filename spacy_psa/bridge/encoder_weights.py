"""Weights of pretrained encoders, apart from the rest of a model.

Some encoders have gigabytes of weights. A component writes them to files next to its model, in the
format of Hugging Face, without a copy in memory. Checkpoints of a training leave out those of
frozen encoders, which do not change.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from spacy_psa.errors import InputError

FILE = "encoder{}.safetensors"
PREFIX = "net."
"""Names of the weights of an encoder begin with it in the state of its module."""
OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""The number of an error of the operating system in the message of a SafetensorError."""
State = dict[str, Any]


class _Folder:
    """A folder with files of weights; equal weights are written once."""

    def __init__(self, path: Path):
        self.path = path
        self.written: dict[str, str] = {}

    def write(self, state: dict[str, Tensor]) -> State:
        digest = weights_hash(state)
        if digest not in self.written:
            name = FILE.format(f"-{len(self.written) + 1}" if self.written else "")
            temporary = self.path / f".{uuid4().hex}"
            try:
                temporary.touch()
                mode = temporary.stat().st_mode
                _save(state, temporary)
                temporary.chmod(mode)  # safetensors lets only the owner read its files
                os.replace(temporary, self.path / name)
            finally:
                temporary.unlink(missing_ok=True)
            self.written[digest] = name
        return {"file": self.written[digest], "hash": digest}


def _save(state: dict[str, Tensor], path: Path) -> None:
    """Write weights; a full disk is an OSError, as from other files, and no SafetensorError."""
    try:
        save_file(state, path, metadata={"format": "pt"})
    except SafetensorError as error:
        number = OS_ERROR.search(str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


_folder: ContextVar[_Folder | None] = ContextVar("folder", default=None)
_left_out: ContextVar[bool] = ContextVar("left_out", default=False)


@contextmanager
def encoder_weights_in(folder: Path) -> Iterator[None]:
    """Inside of this, shims save and load the weights of encoders in files in a folder."""
    token = _folder.set(_Folder(folder))
    try:
        yield
    finally:
        _folder.reset(token)


@contextmanager
def without_frozen_encoders() -> Iterator[None]:
    """Inside of this, shims do not save the weights of frozen encoders.

    To load what they saved, they must have these weights already.
    """
    token = _left_out.set(True)
    try:
        yield
    finally:
        _left_out.reset(token)


def take_apart(module: nn.Module, state: Mapping[str, Any]) -> tuple[State, State | None]:
    """Divide the state of a module into the part that is saved with the model, and a note.

    Returns:
        The state, without the weights of the encoder if they are saved elsewhere; and then a note
        for `put_together`, else None.
    """
    folder = _folder.get()
    leave_out = _left_out.get() and getattr(module, "frozen", False)
    if not hasattr(module, "load_pretrained") or not (folder or leave_out):
        return dict(state), None
    apart = {name: state[name] for name in state if name.startswith(PREFIX)}
    if not all(isinstance(value, Tensor) for value in apart.values()):
        return dict(state), None
    rest = {name: state[name] for name in state if name not in apart}
    if leave_out or folder is None:
        return rest, {}
    return rest, folder.write({name: value.contiguous() for name, value in apart.items()})


def put_together(present: nn.Module | None, state: State, note: State | None) -> State:
    """Return the whole state of a module that `take_apart` has divided.

    Args:
        present: the module that is replaced, if there is one.
        state: the part that was saved with the model.
    """
    if note is None:
        return state
    if not note:
        if present is None:
            raise InputError("a checkpoint of a training has no weights of a frozen encoder")
        own = present.state_dict()
        return {**state, **{name: own[name] for name in own if name.startswith(PREFIX)}}
    folder = _folder.get()
    if folder is None:
        raise InputError(
            f"the weights of the encoder are in {note['file']}, next to the model: load the "
            "component or the pipeline from its folder"
        )
    path = folder.path / note["file"]
    try:
        apart = load_file(path)
    except Exception as error:
        raise InputError(
            f"{path}: cannot be read ({error}): copy the model again, or train again"
        ) from error
    if weights_hash(apart) != note["hash"]:
        raise InputError(
            f"{path}: does not belong to this model, or is damaged: copy the model again, or train "
            "again"
        )
    return {**state, **apart}


def weights_hash(state: dict[str, Tensor]) -> str:
    """Hash names and values of weights, in any order."""
    digest = blake2b(digest_size=16)
    for name in sorted(state):
        digest.update(name.encode())
        digest.update(raw(state[name]))
    return digest.hexdigest()


def raw(tensor: Tensor) -> memoryview:
    """Return the bytes of the values of a tensor."""
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data
