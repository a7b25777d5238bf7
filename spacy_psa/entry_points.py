"""Imports only what a command needs, where spaCy imports torch and the packages of all components.

Without this, a command that reads a file takes 5 seconds to refuse its first line.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast


def leave_out_torch() -> None:
    """Import thinc without torch, in a process that does not compute with models.

    Does nothing if thinc is imported already.
    """
    if "thinc" in sys.modules:
        return
    modules = cast(dict[str, Any], sys.modules)
    modules["torch"] = None
    try:
        import thinc.compat  # noqa: F401
    finally:
        del modules["torch"]


@contextmanager
def only_factories(names: Iterable[str] = ()) -> Iterator[None]:
    """In this block, let new pipelines import the packages of these components only.

    A name that no package registers is left to spaCy, which has its own components.
    """
    from spacy.util import registry

    factories = registry._entry_point_factories
    for name in sorted(set(names)):
        factories.get_entry_point(name)
    factories.entry_points = False
    try:
        yield
    finally:
        factories.entry_points = True
