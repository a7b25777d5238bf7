"""Programs that are timed in processes of their own."""

import sys

import pytest

from benchmarks.worker import Worker, WorkerRow, in_turn

PROGRAM = """
import sys
print("a line of a log", flush=True)
for number, line in enumerate(sys.stdin):
    if line == "end\\n":
        sys.exit()
    print('{"amount": %d, "seconds": 2.0, "cpu_seconds": 1.0}' % number, flush=True)
"""
COMMAND = [sys.executable, "-c", PROGRAM]


def test_a_row_is_timed_by_its_worker():
    with Worker(COMMAND) as worker:
        row = WorkerRow(worker, "name", "task")
        assert [tuple(row.run()) for _ in range(2)] == [(0, 2.0, 1.0), (1, 2.0, 1.0)]
    assert worker.process.returncode == 0


def test_a_worker_that_ends_early_is_an_error():
    with Worker(COMMAND) as worker, pytest.raises(RuntimeError, match="the process ended"):
        worker.do("end")


def test_workers_run_in_turn_and_the_first_round_does_not_count(capsys):
    with Worker(COMMAND) as one, Worker(COMMAND) as two:
        results = in_turn({"one": one, "two": two}, rounds=2)
    assert {name: [run["amount"] for run in runs] for name, runs in results.items()} == {
        "one": [1, 2],
        "two": [1, 2],
    }
    order = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert order == ["one", "two", "two", "one", "one", "two"]
