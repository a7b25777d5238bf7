"""Chains on a GPU against those on the CPU."""

import numpy
import pytest
import torch

from spacy_psa import kernels
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.pair_chain import PairChain, TagPairs

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
LENGTHS = torch.tensor([5, 1, 40, 2, 17])
TAGS = 37


def scores(kind, dtype, excluded=0.1):
    """Scores of both kinds of chain, and what makes a chain of them."""
    torch.manual_seed(0)
    if kind == "pairs":
        legal = torch.rand(TAGS, TAGS) < 0.3
        legal.fill_diagonal_(True)
        pairs = TagPairs(legal.numpy())
        flat = 3 * torch.randn(int(LENGTHS.sum()), len(pairs), dtype=dtype)
        made = lambda x: PairChain(x, LENGTHS, pairs)  # noqa: E731
    else:
        flat = 3 * torch.randn(len(LENGTHS), int(LENGTHS.max()) + 2, TAGS, TAGS, dtype=dtype)
        made = lambda x: LinearChain(x, LENGTHS)  # noqa: E731
    return flat.masked_fill(torch.rand(flat.shape) < excluded, -torch.inf), made


@pytest.fixture(params=["compiled", "torch"], autouse=True)
def path(request, monkeypatch):
    """The CUDA kernels, or torch alone."""
    if request.param == "torch":
        monkeypatch.setattr(kernels, "available_on_gpu", lambda: False)
    else:
        assert kernels.available_on_gpu()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["pairs", "all"])
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


@pytest.mark.parametrize("kind", ["pairs", "all"])
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
