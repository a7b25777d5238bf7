"""The CUDA kernels of chains, compiled for the CPU, against those of numba."""

import numpy
import pytest
import torch

from spacy_psa.kernels import gpu_chain, pair_chain
from spacy_psa.structs.pair_chain import TagPairs
from tests.helpers import cuda_source

LENGTHS = torch.tensor([3, 1, 7, 2])
LEGAL = numpy.array([[1, 1, 0, 1], [0, 0, 1, 0], [1, 1, 1, 0], [1, 0, 0, 1]], dtype=bool)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    compiler, folder = cuda_source.compiler(), tmp_path_factory.mktemp("cuda")
    if compiler is None:
        pytest.skip("needs g++ 11 or later")
    return {
        real: cuda_source.build(compiler, gpu_chain.SOURCE, real, folder)
        for real in ("float", "double")
    }


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request, libraries, monkeypatch):
    library = libraries["float" if request.param == torch.float32 else "double"]

    def launch(name, arguments, blocks, tags):
        cuda_source.launch(library, name, blocks, 3, arguments)  # fewer threads than tags

    monkeypatch.setattr(gpu_chain, "_launch", launch)
    return request.param


def chain(dtype, excluded, legal=LEGAL):
    torch.manual_seed(0)
    pairs = TagPairs(legal)
    flat = 3 * torch.randn(int(LENGTHS.sum()), len(pairs), dtype=dtype)
    flat = flat.masked_fill(torch.rand(flat.shape) < excluded, -torch.inf)
    index = gpu_chain.pair_index(pairs.previous, pairs.begins, torch.device("cpu"))
    arrays = (x.numpy() for x in (flat, LENGTHS, pairs.previous, pairs.begins))
    return (flat, LENGTHS, index), tuple(arrays)


@pytest.mark.parametrize("excluded", [0.0, 0.3, 1.0])
def test_sums_are_those_of_the_cpu(dtype, excluded):
    here, there = chain(dtype, excluded)
    log_z, shares = gpu_chain.forward_backward(*here)
    expected = pair_chain.forward_backward(*there)
    close = {"rtol": 1e-6, "atol": 1e-7} if dtype == torch.float32 else {"rtol": 0, "atol": 1e-12}
    numpy.testing.assert_allclose(log_z, expected[0], **close)
    numpy.testing.assert_allclose(shares, expected[1], **close)
    torch.testing.assert_close(gpu_chain.log_partition(*here), log_z, rtol=0, atol=0)


@pytest.mark.parametrize("excluded", [0.0, 0.3, 1.0])
def test_best_sequences_are_those_of_the_cpu(dtype, excluded):
    here, there = chain(dtype, excluded)
    scores, tags = gpu_chain.viterbi(*here)
    expected = pair_chain.viterbi(*there)
    numpy.testing.assert_array_equal(scores, expected[0])
    numpy.testing.assert_array_equal(tags, expected[1])


def test_of_equal_sequences_the_lowest_tags_are_taken(dtype):
    (flat, lengths, index), arrays = chain(dtype, 0.0, numpy.ones((4, 4), dtype=bool))
    flat.zero_()
    assert gpu_chain.viterbi(flat, lengths, index)[1].tolist() == [0] * len(flat)
    assert pair_chain.viterbi(*arrays)[1].tolist() == [0] * len(flat)


def test_all_pairs_are_those_of_a_chain_without_illegal_ones():
    pairs = TagPairs(numpy.ones((3, 3), dtype=bool))
    index = gpu_chain.all_pairs(3, torch.device("cpu"))
    assert torch.equal(index.previous, pairs.previous)
    assert torch.equal(index.begins, pairs.begins)


def test_pairs_are_also_listed_by_their_previous_tag():
    pairs = TagPairs(LEGAL)
    index = gpu_chain.pair_index(pairs.previous, pairs.begins, torch.device("cpu"))
    for tag in range(pairs.tags):
        after = index.following[index.ends[tag] : index.ends[tag + 1]]
        assert (pairs.previous[after] == tag).all() and len(after) == LEGAL[tag].sum()


def test_the_memory_of_a_block_holds_the_most_tags():
    assert gpu_chain._shared(gpu_chain.MOST_TAGS) <= 48 << 10
