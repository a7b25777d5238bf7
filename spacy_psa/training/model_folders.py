"""model-best and model-last, which are whole at any moment."""

import ctypes
import os
import shutil
from pathlib import Path

from spacy.language import Language

from spacy_psa.corpora.atomic import sync, sync_tree
from spacy_psa.errors import InputError

BEST, LAST = "model-best", "model-last"
NEW, OLD = ".new", ".old"
EXCHANGE = 2  # RENAME_EXCHANGE of Linux


class ModelFolders:
    """The two models that a training saves.

    A model is written to a folder beside, synchronised with the disk, and takes the place of
    the one before by a rename.

    Args:
        output: the output folder of the training.
    """

    def __init__(self, output: Path):
        self.output = output
        self.best, self.last = output / BEST, output / LAST

    def save(self, nlp: Language, *, is_best: bool) -> None:
        """Write model-last, and the same as model-best if it is the best.

        Raises:
            InputError: it cannot be written. The models that were there stay.
        """
        new = self._beside(self.last, NEW)
        try:
            _remove(new)
            nlp.to_disk(new)
            sync_tree(new)
            if is_best:
                copy = self._beside(self.best, NEW)
                _remove(copy)
                shutil.copytree(new, copy)
                sync_tree(copy)
                self._replace(self.best)
            self._replace(self.last)
        except OSError as error:
            for folder in (new, self._beside(self.best, NEW)):
                shutil.rmtree(folder, ignore_errors=True)
            raise InputError(
                f"{self.output}: the model cannot be written ({error.strerror or error}); the "
                "last checkpoint and the earlier models are complete"
            ) from error

    def repair(self) -> None:
        """Put back what a kill between two renames left aside, and remove the rest."""
        for model in (self.best, self.last):
            if not model.exists() and self._beside(model, OLD).exists():
                self._beside(model, OLD).rename(model)
            for suffix in (NEW, OLD):
                _remove(self._beside(model, suffix))

    def remove(self) -> None:
        """Remove both models."""
        for model in (self.best, self.last):
            for folder in (model, self._beside(model, NEW), self._beside(model, OLD)):
                _remove(folder)

    @staticmethod
    def _beside(model: Path, suffix: str) -> Path:
        return model.with_name(f".{model.name}{suffix}")

    def _replace(self, model: Path) -> None:
        new, old = self._beside(model, NEW), self._beside(model, OLD)
        if not model.exists():
            new.rename(model)
        elif exchange(new, model):
            _remove(new)
        else:
            _remove(old)
            model.rename(old)
            new.rename(model)
            _remove(old)
        sync(self.output)


def exchange(one: Path, other: Path) -> bool:
    """Swap the names of two folders in one step; false where the system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here = -100  # AT_FDCWD
    done: int = renameat2(here, os.fsencode(one), here, os.fsencode(other), EXCHANGE)
    return done == 0


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
