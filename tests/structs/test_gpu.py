"""Chains and trees on a GPU against those on the CPU."""

import numpy
import pytest
import torch

from spacy_psa import kernels
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.emission_chain import EmissionChain
from spacy_psa.structs.pair_chain import PairChain, TagPairs
from spacy_psa.structs.tree import SpanTree
from spacy_psa.structs.tree_f1 import best_expected_f1

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
LENGTHS = torch.tensor([5, 1, 40, 2, 17])
TAGS = 37


def scores(kind, dtype, excluded=0.1):
    """Scores of a kind of chain, and the function that makes a chain of them."""
    torch.manual_seed(0)
    if kind != "all":
        legal = torch.rand(TAGS, TAGS) < 0.3
        legal.fill_diagonal_(True)
        pairs = TagPairs(legal.numpy())
    if kind == "apart":
        flat = 3 * torch.randn(int(LENGTHS.sum()), TAGS, dtype=dtype)
        transitions = 3 * torch.randn(TAGS, TAGS, dtype=dtype)
        made = lambda x: EmissionChain(x, transitions.to(x.device), LENGTHS, pairs)  # noqa: E731
    elif kind == "pairs":
        flat = 3 * torch.randn(int(LENGTHS.sum()), len(pairs), dtype=dtype)
        made = lambda x: PairChain(x, LENGTHS, pairs)  # noqa: E731
    else:
        flat = 3 * torch.randn(len(LENGTHS), int(LENGTHS.max()) + 2, TAGS, TAGS, dtype=dtype)
        made = lambda x: LinearChain(x, LENGTHS)  # noqa: E731
    return flat.masked_fill(torch.rand(flat.shape) < excluded, -torch.inf), made


@pytest.fixture(params=["compiled", "torch"], autouse=True)
def path(request, monkeypatch):
    """The kernels of the GPU, or torch and the CPU."""
    if request.param == "torch":
        monkeypatch.setattr(kernels, "available_on_gpu", lambda: False)
        monkeypatch.setattr(kernels, "available_in_triton", lambda: False)
    else:
        assert kernels.available_on_gpu()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["pairs", "all", "apart"])
def test_a_gpu_gives_what_the_cpu_gives(kind, dtype):
    given, made = scores(kind, dtype)
    here, there = made(given), made(given.cuda())
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0, "atol": 1e-11}
    for name in ("log_partition", "marginals", "pairwise_marginals", "entropy", "max"):
        found = getattr(there, name)
        assert found.is_cuda
        torch.testing.assert_close(found.cpu(), getattr(here, name), **close)
    for ours, theirs in zip(there.argmax, here.argmax, strict=True):
        assert torch.equal(ours.cpu(), theirs)
    best = [tags.cpu() for tags in there.argmax]
    torch.testing.assert_close(there.log_prob(best).cpu(), here.log_prob(best), **close)
    for ours, theirs in zip(there.kbest(3), here.kbest(3), strict=True):
        for (log_prob, tags), (expected, expected_tags) in zip(ours, theirs, strict=True):
            assert log_prob == pytest.approx(expected, abs=1e-4)
            assert torch.equal(tags.cpu(), expected_tags)


def test_trees_on_a_gpu_are_those_of_the_cpu(request):
    if request.node.callspec.params["path"] == "compiled" and not kernels.available_in_triton():
        pytest.skip("needs Triton and a C compiler")
    torch.manual_seed(0)
    flat = 2 * torch.randn(int((LENGTHS * (LENGTHS + 1) // 2).sum()), 5)
    results = []
    for device in ("cpu", "cuda"):
        x = flat.to(device).requires_grad_()
        SpanTree.from_spans(x, LENGTHS).log_partition.sum().backward()
        dist = SpanTree.from_spans(x.detach(), LENGTHS)
        trees = dist.argmax, best_expected_f1(dist, torch.eye(5))[0]
        numbers = x.grad, dist.log_partition, dist.span_marginals, dist.entropy
        results.append(([each.cpu() for each in numbers], trees))
    (expected, best), (found, others) = results
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert others == best


@pytest.mark.parametrize("kind", ["pairs", "all", "apart"])
def test_gradients_on_a_gpu_are_those_of_the_cpu(kind):
    given, made = scores(kind, torch.float64, excluded=0.0)
    found = []
    for device in ("cpu", "cuda"):
        x = given.clone().to(device).detach().requires_grad_()
        chain = made(x)
        gold = [torch.zeros(n, dtype=torch.int64) for n in LENGTHS.tolist()]
        legal = chain.log_prob(gold).isfinite()
        (chain.log_prob(gold)[legal].sum() + 2 * chain.log_partition.sum()).backward()
        found.append(x.grad.cpu())
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-11)


def test_a_sentence_without_a_sequence_stays_alone_on_a_gpu():
    given, made = scores("pairs", torch.float32, excluded=0.0)
    given[0] = -torch.inf
    chain = made(given.cuda())
    assert chain.log_partition[0] == -torch.inf and chain.log_partition[1:].isfinite().all()
    assert not chain.marginals[0].any()
    with pytest.raises(ValueError, match="sentence"):
        _ = chain.argmax


def test_evidence_on_a_gpu_is_that_of_the_cpu():
    given, made = scores("pairs", torch.float64)
    allowed = torch.rand(len(LENGTHS), int(LENGTHS.max()), TAGS) < 0.7
    end = torch.from_numpy(numpy.arange(TAGS) % 2 == 0)
    here = made(given).constrain(allowed, end=end).log_partition
    there = made(given.cuda()).constrain(allowed, end=end).log_partition
    torch.testing.assert_close(there.cpu(), here, rtol=0, atol=1e-11)
