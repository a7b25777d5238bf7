"""Modules that run in a new process, which imports from the same places as this one."""

import os
import sys
from threading import Thread

# Python 3.10 has no -P. Only `sys`, which is built in, is imported before the path is right.
WITHOUT_FOLDER = (
    "import sys; del sys.path[0], sys.argv[0]; import runpy; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def child_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as `python -m` does, but without the current folder.

    `python -m` imports from the current folder first, so a file `queue.py` there would run.
    """
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-m", module, *arguments]
    return [sys.executable, "-c", WITHOUT_FOLDER, module, *arguments]


def child_environment(**variables: str) -> dict[str, str]:
    """The environment of a child: this one with some variables, and the path of this process."""
    places = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *sys.path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places)), **variables}


def end_with_starter() -> None:
    """Let this process end when the one that started it has ended, however that happens.

    Then its standard input is closed.
    """
    Thread(target=_end_without_input, daemon=True).start()


def _end_without_input() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock would be held when this process ends
        pass
    os._exit(1)
