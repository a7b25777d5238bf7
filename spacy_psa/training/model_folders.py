"""The output folder of a training: one training at a time, and models that are always whole."""

import ctypes
import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from spacy.language import Language

from spacy_psa.corpora.atomic import sync, sync_tree
from spacy_psa.corpora.held_file import held
from spacy_psa.errors import InputError

LOCK = ".lock"
BEST, LAST = "model-best", "model-last"
NEW, OLD = ".new", ".old"
EXCHANGE = 2  # RENAME_EXCHANGE of Linux


def locked(folder: Path) -> AbstractContextManager[None]:
    """Hold a folder, which is made if it does not exist; InputError if another process holds it."""
    return held(
        folder / LOCK,
        f"{folder}: another process trains in this folder: wait for its end, or use another folder",
        f"{folder}: cannot be written ({{reason}}); correct this and continue with --resume",
    )


class ModelFolders:
    """The two models that a training saves, model-best and model-last.

    A model is written to a hidden folder next to it in the output folder of the training,
    synchronised with the disk, and replaces the one before by a rename.
    """

    def __init__(self, output: Path):
        self.output = output
        self.best, self.last = output / BEST, output / LAST

    def save(self, nlp: Language, *, is_best: bool) -> None:
        """Write model-last, and the same as model-best if it is the best.

        If that fails, the models that were there stay.
        """
        new = beside(self.last, NEW)
        try:
            _remove(new)
            nlp.to_disk(new)
            sync_tree(new)
            if is_best:
                copy = beside(self.best, NEW)
                _remove(copy)
                shutil.copytree(new, copy)
                sync_tree(copy)
                replace(self.best, copy)
            replace(self.last, new)
        except OSError as error:
            for folder in (new, beside(self.best, NEW)):
                shutil.rmtree(folder, ignore_errors=True)
            raise InputError(
                f"{self.output}: the model cannot be written ({error.strerror or error}); the "
                "last checkpoint and the earlier models are complete"
            ) from error

    def repair(self) -> None:
        """Restore a model that a kill between two renames left aside, and remove the rest."""
        for model in (self.best, self.last):
            if not model.exists() and beside(model, OLD).exists():
                beside(model, OLD).rename(model)
            for suffix in (NEW, OLD):
                _remove(beside(model, suffix))

    def remove(self) -> None:
        """Remove both models."""
        for model in (self.best, self.last):
            for folder in (model, beside(model, NEW), beside(model, OLD)):
                _remove(folder)


def beside(model: Path, suffix: str) -> Path:
    """The hidden name next to a model under which it is written or put aside."""
    return model.with_name(f".{model.name}{suffix}")


def replace(model: Path, new: Path) -> None:
    """Replace a model, which need not exist, by the folder `new`; it is whole at any moment."""
    old = beside(model, OLD)
    if not model.exists():
        new.rename(model)
    elif exchange(new, model):
        _remove(new)
    else:
        _remove(old)
        model.rename(old)
        new.rename(model)
        _remove(old)
    sync(model.parent)


def exchange(left: Path, right: Path) -> bool:
    """Swap the names of two folders in one step; false where the system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here = -100  # AT_FDCWD
    done: int = renameat2(here, os.fsencode(left), here, os.fsencode(right), EXCHANGE)
    return done == 0


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
