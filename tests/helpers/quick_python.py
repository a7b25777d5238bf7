"""A Python whose processes have imported torch and spaCy before they begin.

`use` replaces `sys.executable` with a small program. For `-m` and `-c`, the program asks a server
to fork a process, and starts the server if there is none. Then it represents this process: input
and output are those of the program, signals are passed on, and both end together, with the same
status. For everything else, it becomes `PYTHON`.
"""

import array
import atexit
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PYTHON = sys.executable
"""For processes whose imports are tested, or that import little."""
PLACE = "QUICK_PYTHON"
"""The variable with the process that the server works for, and its folder."""
KINDS = {"-m", "-c"}
PROGRAM = """#!{python} -IS
import sys
sys.path.insert(0, {folder!r})
sys.executable = {python!r}
import quick_python
quick_python.launch()
"""


def prepare() -> None:
    """Make a folder for the server of this process and of those that it starts."""
    import tempfile

    # A forked process cannot use a GPU.
    if PLACE in os.environ or sys.platform != "linux" or Path("/dev/nvidiactl").exists():
        return
    folder = Path(tempfile.mkdtemp(prefix="python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "python").write_text(PROGRAM.format(python=PYTHON, folder=str(Path(__file__).parent)))
    (folder / "python").chmod(0o755)
    if os.access(folder / "python", os.X_OK):  # else no file may be run there
        os.environ[PLACE] = f"{os.getpid()} {folder}"


def use() -> None:
    """Let processes of `sys.executable` be forked."""
    import multiprocessing.spawn  # noqa: F401  # which keeps the name of Python

    if PLACE in os.environ:
        sys.executable = f"{os.environ[PLACE].partition(' ')[2]}/python"


def launch() -> None:
    """Be a process that the server forks, or a new one."""
    words = [word for word in sys.argv[1:] if word not in ("-P", "-u")]
    if PLACE not in os.environ or not KINDS & {*words[:1]}:
        os.execv(PYTHON, [PYTHON, *sys.argv[1:]])
    request = {
        "words": sys.argv[1:],
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "program": sys.argv[0],
    }
    with connected() as server:
        files = array.array("i", [0, 1, 2]).tobytes()
        server.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        server.sendall(json.dumps(request).encode() + b"\n")
        answers = server.makefile()
        number = int(answers.readline())
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, lambda each, _: os.kill(number, each))
        status = int(answers.readline())
    if os.WIFSIGNALED(status):
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def connected() -> socket.socket:
    """A connection to the server, which is started where there is none."""
    import subprocess

    place = os.environ[PLACE].partition(" ")[2]
    server = socket.socket(socket.AF_UNIX)
    with suppress(OSError):
        server.connect(f"{place}/server")
        return server
    with open(f"{place}/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for _ in range(3000):
            with suppress(OSError):
                server.connect(f"{place}/server")
                return server
            if not os.path.exists(f"{place}/started"):
                Path(f"{place}/started").touch()
                own = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
                null = subprocess.DEVNULL
                with open(f"{place}/errors", "w") as errors:
                    subprocess.Popen(
                        [PYTHON, __file__], env=own, stdin=null, stdout=null, stderr=errors,
                        start_new_session=True,
                    )  # fmt: skip
            time.sleep(0.1)
    raise SystemExit(f"no server in {place}: {Path(place, 'errors').read_text()}")


def serve() -> dict[str, Any]:
    """Fork for each request; returns in the forked processes only."""
    import gc

    gc.disable()
    owner, _, place = os.environ[PLACE].partition(" ")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{place}/server")
    import spacy.lang.en  # noqa: F401
    import torch
    import typer  # noqa: F401

    with suppress(Exception):  # as where torch does not know this version of Python
        import torch._dynamo  # which optimizers of torch load

    sys.path.append(str(Path(__file__).parents[2]))
    from tests.helpers.english import shorten_exceptions
    from tests.helpers.registries import search_packages_once

    del sys.path[0], sys.path[-1]
    search_packages_once()
    shorten_exceptions()
    torch.set_num_threads(1)
    gc.freeze()
    listening.listen(100)
    listening.settimeout(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while os.path.exists(f"/proc/{owner}"):
        with suppress(TimeoutError):
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                gc.enable()
                return keep(connection)
            connection.close()
    os._exit(0)


def keep(connection: socket.socket) -> dict[str, Any]:
    """Fork, and tell the number and the end of the forked process, in which this returns."""
    _, [(_, _, files)], _, _ = connection.recvmsg(1, socket.CMSG_SPACE(12))
    request: dict[str, Any] = json.loads(connection.makefile().readline())
    number = os.fork()
    files = array.array("i", files)
    if number == 0:
        connection.close()
        for at, file in enumerate(files):
            os.dup2(file, at)
            os.close(file)
        return request
    for file in files:
        os.close(file)
    watched = os.pidfd_open(number)
    with suppress(OSError):
        connection.sendall(b"%d\n" % number)
        if watched not in select.select([connection, watched], [], [])[0]:
            os.kill(number, signal.SIGKILL)  # since the one that stands for it has ended
        _, status = os.waitpid(number, 0)
        connection.sendall(b"%d\n" % status)
    os._exit(0)


def become(request: dict[str, Any]) -> None:
    """Run the command of a request as Python does, in this process."""
    import importlib
    import random
    import runpy
    import types

    import numpy

    random.seed()
    numpy.random.seed()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.executable = request["program"]
    options, words = set(), request["words"]
    while words[0] not in KINDS:
        options.add(words.pop(0))
    if "-u" in options or os.environ.get("PYTHONUNBUFFERED"):
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)
    places = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    first = [] if "-P" in options else [os.getcwd() if words[0] == "-m" else ""]
    sys.path[:0] = first + [os.path.abspath(place) for place in places]
    importlib.invalidate_caches()
    kind, code, *words = words
    sys.argv = [kind, *words]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    if kind == "-m":
        runpy._run_module_as_main(code)
    else:
        exec(compile(code, "<string>", "exec"), main.__dict__)


def end(status: Any) -> None:
    """End this process as Python does, but for the memory of all modules, which takes time."""
    import threading

    threading._shutdown()
    atexit._run_exitfuncs()
    if not isinstance(status, int | None):
        print(status, file=sys.stderr)
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit((status or 0) & 255)


if __name__ == "__main__":
    request = serve()
    try:
        become(request)
    except SystemExit as error:
        end(error.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        end(1)
    end(0)
