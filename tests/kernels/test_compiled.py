"""The cache of compiled kernels: it may fail in every way, and changes no result."""

import json
import shutil

import pytest

from spacy_psa.kernels import available
from tests.helpers.processes import run_elsewhere

if not available():
    pytest.skip("numba does not work here", allow_module_level=True)

# Prints what a kernel computes, and the warnings. The kernel calls two others.
LOG_PARTITION = """
import json, warnings
import numpy
{before}
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    from spacy_psa.kernels.chain import log_partition
    found = log_partition(numpy.zeros((1, 3, 2, 2)), numpy.array([3]))
print(json.dumps([round(found.item(), 4), [str(w.message) for w in seen]]))
"""
LOG_8 = 2.0794
UNWRITABLE = """
from numba.core.caching import _CacheLocator
def refuse(self):
    raise OSError(30, "Read-only file system")
_CacheLocator.ensure_cache_path = refuse
"""
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"

# Prints all bits that the kernels of floats compute, forward and backward.
ALL_KERNELS = """
import json
import torch
from spacy_psa.kernels.attention import attend
from spacy_psa.kernels.gates import tanh
from spacy_psa.kernels.span_hidden import span_hidden
from spacy_psa.modules.lstm import BiLSTM

torch.manual_seed(0)
found = {}

def run(name, function, *shapes):
    inputs = [torch.randn(*shape, requires_grad=True) for shape in shapes]
    output = function(*inputs)
    tensors = [output, *torch.autograd.grad(output.square().sum(), inputs)]
    found[name] = [t.detach().flatten().view(torch.int32).tolist() for t in tensors]

lengths = torch.tensor([9, 4])
run(
    "span_hidden", lambda f, *rest: span_hidden(f, lengths, *rest, 1e-5),
    (15, 61), (61,), (61,), (61,),
)
run(
    "attention",
    lambda *parts: attend(
        *parts, lengths, activation="tanh", signed=False, masked=True, band=9
    ),
    (13, 21), (13, 21), (21,), (13, 4), (9,), (13, 21),
)
run("tanh", lambda x: tanh(x * 1), (1000,))
lstm = BiLSTM(7, 21, input_dropout=0.0, output_dropout=0.0)
run("lstm", lambda x: lstm(x, lengths), (13, 7))
print(json.dumps(found))
"""


def log_partition(folder, before=""):
    return run_elsewhere(LOG_PARTITION.format(before=before), NUMBA_CACHE_DIR=str(folder))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the cache of the kernel."""
    folder = tmp_path_factory.mktemp("cache")
    assert log_partition(folder) == [LOG_8, []]
    return folder


@pytest.fixture
def cache(made, tmp_path):
    """A copy of the cache."""
    return shutil.copytree(made, tmp_path / "cache")


def state(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")}


def test_a_new_process_takes_its_kernels_from_the_cache(cache):
    before = state(cache)
    assert any("log_partition" in name for name in before)
    assert log_partition(cache) == [LOG_8, []]
    assert state(cache) == before


def test_without_a_folder_for_the_cache_kernels_work_and_one_warning_says_so(tmp_path):
    found, (warning,) = log_partition(tmp_path, UNWRITABLE)
    assert found == LOG_8
    assert "no folder that can be written" in warning and "NUMBA_CACHE_DIR" in warning
    assert not [*tmp_path.rglob("*.nb?")]


def test_on_a_full_disk_kernels_work_and_one_warning_says_so(tmp_path):
    found, (warning,) = log_partition(tmp_path, FULL)
    assert found == LOG_8
    assert "File too large" in warning and "NUMBA_CACHE_DIR" in warning


@pytest.mark.parametrize(("suffix", "keep"), [("nbi", 60), ("nbc", 0)])
def test_a_cut_cache_file_is_made_anew(suffix, keep, cache):
    whole = {path: path.stat().st_size for path in cache.rglob(f"*.{suffix}")}
    for path in whole:
        path.write_bytes(path.read_bytes()[:keep])
    assert log_partition(cache) == [LOG_8, []]
    assert {path: path.stat().st_size for path in whole} == whole


def test_a_cut_cache_file_on_a_full_disk_loses_no_result(cache):
    for path in cache.rglob("*.nbi"):
        path.write_bytes(b"")
    found, warnings = log_partition(cache, FULL)
    assert found == LOG_8 and len(warnings) == 1


def test_kernels_compute_the_same_bits_with_an_empty_and_a_full_cache(tmp_path):
    """The machine code that LLVM links differs between the two."""
    cold, warm = (run_elsewhere(ALL_KERNELS, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    for name in cold:
        assert json.dumps(cold[name]) == json.dumps(warm[name]), name
