"""Files and folders that appear complete or not at all."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from spacy_psa.corpora import atomic
from spacy_psa.corpora.atomic import atomic_folder, atomic_path, check_free
from spacy_psa.errors import InputError
from tests.helpers.patience import PATIENCE


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_keeps_its_permissions_also_while_it_is_written(tmp_path):
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o600)
    with atomic_path(path) as temporary:
        assert mode(temporary) == 0o600
        temporary.write_text("new")
    assert mode(path) == 0o600 and path.read_text() == "new"


def test_a_new_file_and_folder_have_the_usual_permissions(tmp_path):
    usual_file, usual_folder = tmp_path / "f", tmp_path / "d"
    usual_file.touch()
    usual_folder.mkdir()
    with atomic_path(tmp_path / "file"), atomic_folder(tmp_path / "folder"):
        pass
    assert mode(tmp_path / "file") == mode(usual_file)
    assert mode(tmp_path / "folder") == mode(usual_folder)


def test_a_folder_keeps_its_permissions(tmp_path):
    (tmp_path / "out").mkdir(mode=0o700)
    with atomic_folder(tmp_path / "out") as temporary:
        (temporary / "file").touch()
    assert mode(tmp_path / "out") == 0o700


@pytest.mark.parametrize("writer", [atomic_path, atomic_folder])
def test_processes_of_one_number_do_not_share_a_temporary_name(tmp_path, monkeypatch, writer):
    monkeypatch.setattr(os, "getpid", lambda: 7)  # in two containers
    with writer(tmp_path / "out") as one, writer(tmp_path / "out") as other:
        assert one != other
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_content_is_on_the_disk_before_the_name(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(atomic, "sync", lambda path: done.append(path.read_text()))
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("named"), replace(*names)))
    with atomic_path(tmp_path / "out") as temporary:
        temporary.write_text("whole")
    assert done == ["whole", "named"]


def test_long_names_work_as_far_as_the_file_system_takes_them(tmp_path):
    longest = tmp_path / ("é" * 127)  # 254 bytes
    with atomic_path(longest) as temporary:
        temporary.write_text("whole")
    assert longest.read_text() == "whole"


def test_a_name_too_long_for_the_file_system_is_named(tmp_path):
    path = tmp_path / ("x" * 300)
    for write in (atomic_path, atomic_folder):
        with pytest.raises(InputError, match=r"x: cannot be written .*name too long"), write(path):
            pass
    with pytest.raises(InputError, match="name too long"):
        check_free(path)
    assert list(tmp_path.iterdir()) == []


# Python handles a signal that comes just before a sleep only after it, so each sleep is short. The
# handlers are set because the tests may run under nohup, or in the background of a shell.
WAIT = """
import signal, sys, time
from pathlib import Path
from spacy_psa import app as module

def wait(output: Path) -> None:
    from spacy_psa.corpora.atomic import atomic_folder, atomic_path
    with atomic_path(output) as file, atomic_folder(output.with_name("folder")):
        file.write_text("half")
        print("ready", flush=True)
        for _ in range(600): time.sleep(0.1)

signal.signal(signal.SIGINT, signal.default_int_handler)
for number in signal.SIGTERM, signal.SIGHUP: signal.signal(number, signal.SIG_DFL)
module.app.command("wait")(wait)
module.app(["wait", sys.argv[1]])
"""


def started(code, path):
    """Start a process that prints "ready" when the command is at work."""
    command = [sys.executable, "-c", code, path]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_is_told_to_end_leaves_what_was_there(tmp_path, number):
    path = tmp_path / "out"
    path.write_text("old")
    with started(WAIT, path) as process:
        process.send_signal(number)
        assert process.wait(PATIENCE) != 0
    assert [file.name for file in tmp_path.iterdir()] == ["out"]
    assert path.read_text() == "old"


def test_a_command_under_nohup_goes_on(tmp_path):
    code = WAIT.replace("SIG_DFL", "SIG_IGN")
    code = code.replace("for _ in range(600): time.sleep(0.1)", "sys.stdin.readline()")
    with started(code, tmp_path / "out") as process:
        process.send_signal(signal.SIGHUP)
        process.communicate(b"\n", timeout=PATIENCE)
    assert process.returncode == 0
    assert (tmp_path / "out").read_text() == "half"
