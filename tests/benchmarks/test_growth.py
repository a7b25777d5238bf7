"""The curves of growth: the task of a row at a point, and measurement in a forked process."""

import numpy
import pytest

from benchmarks.apart import apart
from benchmarks.growth.measure import AXES, task

SENTENCES = [[f"w{i + j}" for j in range(1 + i % 30)] for i in range(0, 9000, 30)]
SENTENCES += [[f"v{i}" for i in range(k, k + 30)] for k in range(0, 3000, 30)]


def test_memory_is_that_of_the_work_and_of_what_it_needs():
    before = numpy.ones(10_000_000)  # arrays of more than 32 MB: malloc never keeps them

    def prepare():
        kept = numpy.ones(5_000_000)

        def work():
            return len(numpy.ones(6_000_000)) + len(kept)

        return work

    results = [apart(before.sum, prepare) for _ in range(5)]
    assert {result["amount"] for result in results} == {11_000_000}
    # 40 MB are kept, and 48 MB made; a system that is short of memory may take some of it away.
    assert 80e6 < max(result["bytes"] for result in results) < 107e6
    assert min(result["cpu_seconds"] for result in results) > 0


def test_work_that_fails_is_an_error(capfd):
    with pytest.raises(RuntimeError, match="traceback is above"):
        apart(int, lambda: lambda: 1 // 0)
    assert "ZeroDivisionError" in capfd.readouterr().err


@pytest.mark.parametrize("axis", AXES)
def test_each_point_has_its_words(axis):
    for point in AXES[axis]:
        given = task(axis, point, SENTENCES, 3000)
        assert given[axis] == point
        sizes = [len(words) for words in given["texts"]]
        if axis in ("sentence", "document"):
            assert set(sizes) == {point} and sum(sizes) > max(point, 3000) - point
        if axis == "vocabulary":
            assert len({word for words in given["texts"] for word in words}) == point
