"""Imports only what a command needs.

spaCy imports torch, its own commands and the packages of all components. Without this, a command
that reads a file takes 5 seconds to refuse its first line.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
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


def leave_out_commands() -> None:
    """Let spaCy be imported without its own commands, which take long to import.

    Of these, `import spacy` needs `spacy.info` only, which is then imported at its first call. All
    can be imported as usual. Does nothing if spaCy is imported already.
    """
    if "spacy" not in sys.modules:
        sys.modules[_Info.name] = _Info(_Info.name)


class _Info(ModuleType):
    """Stands for the module of `spacy.info` until spaCy reads this function."""

    name = "spacy.cli.info"

    def __getattr__(self, attribute: str) -> Any:
        if attribute != "info":
            raise AttributeError(attribute)
        del sys.modules[self.name]
        return _info


def _info(*args: Any, **options: Any) -> Any:
    from spacy.cli.info import info

    return info(*args, **options)


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
