"""Processes that are forked behave as those of Python."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.patience import wait_for
from tests.helpers.quick_python import PYTHON


def run(code, *words, program=None, **options):
    command = [program or sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    return done.returncode, done.stdout, done.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize(
    "code",
    [
        "print(sys.argv, sys.path[0], os.getcwd(), os.environ['SOME'], sys.stdin.read())",
        "print(sys.executable == os.environ['OWN'])",
        "sys.exit(3)",
        "sys.exit('why')",
        "1 / 0",
        "os.kill(os.getpid(), 9)",
        "os.kill(os.getpid(), 15)",
        "import atexit; atexit.register(print, 'end', flush=True); print(1)",
    ],
)
def test_input_output_and_end_are_the_same(code, tmp_path):
    options = {"input": "in", "cwd": tmp_path, "env": {**os.environ, "SOME": "é", "OWN": PYTHON}}
    words = ["a b", "c"]
    expected = run(f"import os, sys; {code}", *words, program=PYTHON, **options)
    options["env"]["OWN"] = sys.executable
    assert run(f"import os, sys; {code}", *words, **options) == expected


def test_a_process_ends_with_the_one_that_stands_for_it():
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"
    for number in (signal.SIGKILL, signal.SIGTERM):
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            forked = Path("/proc", process.stdout.readline().strip())
            process.send_signal(number)
            assert process.wait() == -number
        wait_for(lambda forked=forked: not forked.exists())
