"""The chart kernel of a GPU; without one, Triton runs it on the CPU."""

import itertools
import os
import subprocess

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed (Linux: nox -s triton)")
pytest.importorskip("numba")

from spacy_psa import kernels
from spacy_psa.kernels import gpu_tree, tree
from spacy_psa.structs import tree_kernels
from spacy_psa.structs.tree import SpanTree
from spacy_psa.structs.tree_f1 import best_expected_f1
from tests.helpers.quick_python import PYTHON
from tests.helpers.span_trees import subtrees, tree_constituents

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LENGTHS = torch.tensor([5, 1, 11, 2])
CELLS = int((LENGTHS * (LENGTHS + 1) // 2).sum())

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:triton.runtime.interpreter")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks so small that short sentences have several of them."""
    monkeypatch.setattr(gpu_tree, "STARTS", 4)
    monkeypatch.setattr(gpu_tree, "SPLITS", 4)


def scores(dtype, excluded):
    torch.manual_seed(0)
    both = 3 * torch.randn(2, CELLS, dtype=dtype)
    both = both.masked_fill(torch.rand(both.shape) < excluded, -torch.inf)
    both[0, :15] = -torch.inf  # the first sentence has no tree
    return both.unbind()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [11, 3])
@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_charts_are_those_of_the_cpu(dtype, width, excluded):
    here = scores(dtype, excluded)
    there = [x.to(DEVICE) for x in here]
    sums = gpu_tree.inside_outside(*there, LENGTHS, width)
    expected = tree.inside_outside(*(x.double().numpy() for x in here), LENGTHS.numpy(), width)
    for ours, theirs in zip(sums, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), torch.from_numpy(theirs), rtol=1e-12, atol=1e-12)
    assert torch.equal(gpu_tree.log_partition(*there, LENGTHS, width), sums[0])
    best, cells = gpu_tree.cky(*there, LENGTHS, width)
    expected = tree.cky(*(x.numpy() for x in here), LENGTHS.numpy(), width)
    assert best.tolist() == expected[0].tolist()
    assert cells.tolist() == sorted(expected[1].tolist())


def test_of_equal_trees_the_same_one_is_taken():
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        lengths = torch.randint(1, 8, (6,), generator=generator)
        size = int((lengths * (lengths + 1) // 2).sum())
        here = torch.randint(0, 2, (2, size), generator=generator).float().unbind()
        _, cells = gpu_tree.cky(*(x.to(DEVICE) for x in here), lengths, 8)
        expected = tree.cky(*(x.numpy() for x in here), lengths.numpy(), 8)
        assert cells.tolist() == sorted(expected[1].tolist())


def test_an_empty_batch_has_no_chart():
    none = torch.empty(0, device=DEVICE)
    assert [len(x) for x in gpu_tree.cky(none, none, LENGTHS[:0], 0)] == [0, 0]


@pytest.fixture
def on_the_kernel(monkeypatch):
    """Charts are computed by Triton, also those of tensors on the CPU."""

    def run(name, label, null, cells):
        result = getattr(gpu_tree, name)(label, null, cells.lengths, cells.width)
        return result if isinstance(result, tuple) else (result,)

    monkeypatch.setattr(kernels, "available", lambda: True)
    monkeypatch.setattr(tree_kernels, "_run", run)


def test_sums_and_gradients_are_those_of_enumeration(on_the_kernel):
    lengths = torch.tensor([3, 2])
    flat = torch.randn(9, 2, dtype=torch.float64, device=DEVICE, requires_grad=True)
    dist = SpanTree.from_spans(flat, lengths)
    dist.log_partition.backward(torch.tensor([1.0, 2.0], dtype=torch.float64, device=DEVICE))
    plain = flat.detach().clone().requires_grad_()
    listed = [[tree_constituents(t) for t in subtrees(0, n, 3, True)] for n in lengths.tolist()]
    other = SpanTree.from_spans(plain, lengths)
    count = max(map(len, listed))
    padded = [list(itertools.islice(itertools.cycle(own), count)) for own in listed]
    each = torch.stack([other.score(pair) for pair in zip(*padded, strict=True)])
    rows = [each[: len(own), b] for b, own in enumerate(listed)]
    log_z = torch.stack([row.logsumexp(0) for row in rows])
    (log_z[0] + 2 * log_z[1]).backward()
    close = {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(dist.log_partition, log_z, **close)
    torch.testing.assert_close(flat.grad, plain.grad, **close)
    entropy = torch.stack([-(row.softmax(0) * row.log_softmax(0)).sum() for row in rows])
    constant = SpanTree.from_spans(flat.detach(), lengths)
    torch.testing.assert_close(constant.entropy, entropy.detach(), **close)
    assert constant.argmax == [own[int(row.argmax())] for own, row in zip(listed, rows)]


def test_the_tree_of_the_best_expected_f1_is_that_of_the_cpu(on_the_kernel, monkeypatch):
    lengths = torch.tensor([9, 1, 12])
    flat = 2 * torch.randn(45 + 1 + 78, 3)
    parts = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    given = SpanTree.from_spans(flat.to(DEVICE), lengths)
    trees, f1 = best_expected_f1(given, parts)
    monkeypatch.undo()
    expected = best_expected_f1(SpanTree.from_spans(flat, lengths), parts)
    assert trees == expected[0]
    torch.testing.assert_close(f1, expected[1], rtol=1e-9, atol=1e-9)


@pytest.mark.skipif(DEVICE == "cuda", reason="has a GPU")
def test_triton_without_a_gpu_is_not_used():
    with pytest.warns(UserWarning, match="computes charts on the CPU instead"):
        assert not kernels.available_in_triton.__wrapped__()


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from spacy_psa.kernels import gpu_tree

types = {"label": "*fp32", "null": "*fp64", "limit": "i32", "split": "*i32"}
types |= {"firsts": "*i64", "lengths": "*i64"}
names = gpu_tree._compiled().arg_names
signature = {name: "constexpr" if name.isupper() else types.get(name, "*fp64") for name in names}
for best, outside in ((True, True), (False, False), (False, True)):
    sizes = {"STARTS": gpu_tree.STARTS, "SPLITS": gpu_tree.SPLITS}
    source = ASTSource(gpu_tree._compiled(), signature, {"MAX": best, "OUTSIDE": outside, **sizes})
    made = triton.compile(source, GPUTarget("cuda", 80, 32), {"num_stages": 1})
    barriers = made.asm["ttgir"].count("barrier")
    assert barriers == (3 if outside else 1), barriers
    assert "ld.global.nc" not in made.asm["ptx"]  # it might not see what the kernel wrote
print("compiled")
"""


def test_the_kernel_compiles_for_cuda_without_a_gpu(tmp_path):
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    command = [PYTHON, "-c", COMPILE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "compiled\n", done.stderr
