"""The curves of growth: the task of a row at a point, and measurement in a forked process."""

from mmap import mmap

import numpy
import pytest

from benchmarks.apart import apart
from benchmarks.growth.measure import AXES, task

SENTENCES = [[f"w{i + j}" for j in range(1 + i % 30)] for i in range(0, 9000, 30)]
SENTENCES += [[f"v{i}" for i in range(k, k + 30)] for k in range(0, 3000, 30)]


def ones(count):
    """An array in memory of its own: malloc may return some that was in use before."""
    array = numpy.frombuffer(mmap(-1, 8 * count))
    array[:] = 1.0
    return array


def test_memory_is_that_of_the_work_and_of_what_it_needs():
    before = ones(10_000_000)

    def prepare():
        kept = ones(5_000_000)

        def work():
            return len(ones(6_000_000)) + len(kept)

        return work

    result = apart(before.sum, prepare)
    assert result["amount"] == 11_000_000
    assert 80e6 < result["bytes"] < 107e6  # 40 MB are kept, and 48 MB made
    assert result["cpu_seconds"] > 0


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
