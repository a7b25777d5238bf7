"""Samples of what the main thread does."""

import signal
import threading

import pytest

from spacy_psa.errors import InputError
from spacy_psa.laboratory.performance.profile import sampled


def name_of(frame):
    return frame.f_code.co_name


def wait_for_a_sample(seconds):
    while not seconds["wait_for_a_sample"]:
        sum(range(1000))


def test_time_counts_for_the_function_that_runs():
    with sampled(name_of) as seconds:
        wait_for_a_sample(seconds)
    assert seconds["wait_for_a_sample"] > 0


def test_an_error_passes_and_the_timer_ends():
    handler = signal.getsignal(signal.SIGALRM)
    with pytest.raises(ZeroDivisionError), sampled(name_of):
        raise ZeroDivisionError
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is handler


def test_other_threads_are_refused():
    found = []

    def ask():
        try:
            with sampled(name_of):
                pass
        except InputError as error:
            found.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert "main thread" in found[0]
