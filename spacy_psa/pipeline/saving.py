"""Settings that were changed are saved with a component, and loading is all or nothing.

A pipeline is made from its config before its components are loaded, so a setting that was changed
after that would be lost. It is saved with the component, next to the value that it replaces, and is
set again where the config still has that value.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spacy_psa.errors import InputError

CHANGED = "changed"


def note_changes(pipe: Any) -> None:
    """Note the settings that were changed among those that are saved with a component."""
    changed = {
        name: [value, getattr(pipe, name)]
        for name, value in pipe._configured.items()
        if getattr(pipe, name) != value
    }
    pipe.cfg.pop(CHANGED, None)
    if changed:
        pipe.cfg[CHANGED] = changed


def set_changes(pipe: Any) -> None:
    """Set the settings again that had been changed when the component was saved."""
    for name, (before, value) in pipe.cfg.get(CHANGED, {}).items():
        if pipe._configured.get(name, CHANGED) == before:
            setattr(pipe, name, value)


@contextmanager
def all_or_nothing(pipe: Any) -> Iterator[None]:
    """Make a context in which a component is loaded; if that fails, it stays as it was.

    InputError if the data are damaged, or belong to another architecture.
    """
    cfg, model = {**pipe.cfg, "labels": pipe.label_data}, pipe.model.to_bytes()
    settings = {name: getattr(pipe, name) for name in pipe._configured}
    nodes = list(pipe.model.walk())
    open_dims = [(node, d) for node in nodes for d in node.dim_names if not node.has_dim(d)]
    for name in [name for name in pipe.cfg if name not in ("labels", "tags")]:
        pipe.cfg.pop(name)  # the saved component may not have it
    try:
        yield
        pipe._check_loaded()
    except Exception as error:
        pipe.cfg = cfg
        vars(pipe).update(settings)
        pipe._forget_derived()
        pipe.model.from_bytes(model)
        for node, dim in open_dims:  # thinc does not unset the dimensions that were loaded
            node.set_dim(dim, None, force=True)
        if isinstance(error, FileNotFoundError):
            raise
        raise InputError(f"Component '{pipe.name}' cannot be loaded: {error}") from error
