"""A function in several processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_psa.annotation.annotator import AHEAD, Annotator, in_processes
from spacy_psa.annotation.input import text_doc
from spacy_psa.errors import InputError
from tests.helpers.patience import wait_for


def double(number: int) -> int:
    if number < 0:
        raise InputError(f"{number} is below 0; give another")
    return 2 * number


def die(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_results_are_in_order():
    assert list(in_processes(double, range(50), 3)) == [2 * number for number in range(50)]


def test_arguments_are_taken_as_they_are_needed():
    taken = []
    found = in_processes(double, (taken.append(i) or i for i in range(100)), 2)
    assert [next(found) for _ in range(5)] == [0, 2, 4, 6, 8]
    assert len(taken) <= 5 + 2 * AHEAD
    found.close()


def test_errors_of_the_function_pass_through():
    found = in_processes(double, [1, -1, 2], 2)
    assert next(found) == 2
    with pytest.raises(InputError, match="-1 is below 0"):
        next(found)


def test_a_process_that_is_killed_is_an_error():
    with pytest.raises(InputError, match="a process was killed"):
        list(in_processes(die, [1, 2], 2))


def blank() -> Language:
    return spacy.blank("en")


def strings_known(doc: Doc) -> tuple[int, int]:
    return os.getpid(), len(doc.vocab.strings)


def test_processes_keep_no_words():
    """40 batches of 1,000 new words each."""
    batches = (
        [" ".join(f"w{batch}x{doc}x{i}" for i in range(50)).encode() for doc in range(20)]
        for batch in range(40)
    )
    known: dict[int, list[int]] = {}
    for outcomes in in_processes(Annotator(blank, text_doc, strings_known), batches, 2):
        process, strings = outcomes[0].row
        known.setdefault(process, []).append(strings)
    for strings in known.values():
        assert max(strings) - min(strings) < 100  # where a batch brings more than 1,000


PARENT = """
import os, time
from spacy_psa.annotation.annotator import in_processes

def pid(_):
    return os.getpid()

def arguments():
    yield from range(10)
    time.sleep(600)

for number in in_processes(pid, arguments(), 2):
    print(number, flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at /proc")
def test_processes_end_when_their_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    children = {int(parent.stdout.readline()) for _ in range(5)}
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_for(lambda: not any(map(_runs, children)))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def threads(number):
    import torch

    return torch.get_num_threads()


def test_each_process_has_one_thread():
    import torch

    torch.set_num_threads(2)
    try:
        assert list(in_processes(threads, [0, 1], 2)) == [1, 1]
    finally:
        torch.set_num_threads(1)
