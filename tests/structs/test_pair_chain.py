"""A chain over legal pairs against the dense chain with -inf at the other pairs."""

import numpy
import pytest
import torch
from hypothesis import given, settings

from spacy_psa import kernels
from spacy_psa.ragged import pad
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.pair_chain import PairChain, TagPairs, join
from tests.helpers.chains import pairs_and_lengths

LEGAL = numpy.array(
    [[1, 1, 0, 1], [0, 0, 1, 0], [1, 1, 1, 0], [1, 0, 0, 1]], dtype=bool
)  # (previous, tag)
LENGTHS = torch.tensor([3, 1, 4])


def dense(flat, lengths, pairs):
    """The dense chain, built entry by entry."""
    potentials = torch.full((len(flat), pairs.tags, pairs.tags), -torch.inf, dtype=flat.dtype)
    firsts = set((torch.cumsum(lengths, 0) - lengths).tolist())
    for token in range(len(flat)):
        for p in range(len(pairs)):
            if token not in firsts:
                potentials[token, pairs.previous[p], pairs.tag[p]] = flat[token, p]
        if token in firsts:
            potentials[token, 0] = flat[token, pairs.begins[:-1]]
    return LinearChain(pad(potentials, lengths), lengths)


def make(dtype=torch.float64, seed=0, lengths=LENGTHS, legal=LEGAL, excluded=0.0):
    torch.manual_seed(seed)
    pairs = TagPairs(legal)
    flat = 3 * torch.randn(int(lengths.sum()), len(pairs), dtype=dtype)
    if excluded:
        flat = flat.masked_fill(torch.rand(flat.shape) < excluded, -torch.inf)
    return flat, lengths, pairs


@pytest.fixture(params=["compiled", "torch"])
def path(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(kernels, "available", lambda: False)


def test_pairs_are_sorted_by_tag():
    pairs = TagPairs(LEGAL)
    both = list(zip(pairs.tag.tolist(), pairs.previous.tolist(), strict=True))
    assert both == sorted(both) and len(pairs) == LEGAL.sum()
    assert all(LEGAL[previous, tag] for tag, previous in both)
    assert [int(pairs.tag[begin]) for begin in pairs.begins[:-1]] == list(range(pairs.tags))


def test_a_tag_that_nothing_may_precede_is_an_error():
    with pytest.raises(ValueError, match="no tag may come before tag 1"):
        TagPairs(numpy.array([[True, False], [True, False]]))


@pytest.mark.parametrize("shape", [(7, 9), (8, 8)])
def test_potentials_of_another_shape_are_an_error(shape):
    with pytest.raises(ValueError, match=r"shape \(8, 9\)"):
        PairChain(torch.zeros(shape), LENGTHS, TagPairs(LEGAL))


def test_tilted_is_the_tilted_dense_chain(path):
    flat, lengths, pairs = make()
    scores = torch.randn(3, 4, 4, dtype=torch.float64)
    tilted = PairChain(flat, lengths, pairs).tilted(scores)
    other = dense(flat, lengths, pairs).tilted(scores)
    assert torch.allclose(tilted.log_partition, other.log_partition, atol=1e-12)
    assert torch.allclose(tilted.marginals, other.marginals, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("excluded", [0.0, 0.15])
def test_compiled_answers_are_those_of_the_dense_chain_to_the_bit(dtype, excluded):
    flat, lengths, pairs = make(dtype, excluded=excluded)
    # At this seed every sentence has a legal analysis.
    chain, other = PairChain(flat, lengths, pairs), dense(flat, lengths, pairs)
    assert torch.equal(chain.potentials[:, 1:], other.potentials[:, 1:])
    assert torch.equal(chain.log_partition, other.log_partition)
    assert torch.equal(chain.max, other.max)
    for ours, theirs in zip(chain.argmax, other.argmax, strict=True):
        assert torch.equal(ours, theirs)
    assert torch.equal(chain.pairwise_marginals, other.pairwise_marginals)
    assert torch.allclose(chain.marginals, other.marginals, rtol=0, atol=1e-7)
    assert torch.allclose(chain.entropy, other.entropy, rtol=1e-5)
    assert torch.equal(chain.score(other.argmax), other.score(other.argmax))


@pytest.mark.usefixtures("path")
def test_everything_else_is_that_of_the_dense_chain():
    flat, lengths, pairs = make()
    chain, other = PairChain(flat, lengths, pairs), dense(flat, lengths, pairs)
    assert chain.shape == other.shape and chain.dtype == other.dtype
    assert torch.allclose(chain.log_partition, other.log_partition)
    assert torch.allclose(chain.marginals, other.marginals)
    assert torch.allclose(chain.entropy, other.entropy)
    for ours, theirs in zip(chain.kbest(5), other.kbest(5), strict=True):
        assert [tags.tolist() for _, tags in ours] == [tags.tolist() for _, tags in theirs]
    for ours, theirs in zip(*(c.sample(20, torch.Generator()) for c in (chain, other))):
        assert [tags.tolist() for tags in ours] == [tags.tolist() for tags in theirs]
    rows = torch.tensor([0, 2])
    assert torch.allclose(chain.select(rows).log_partition, other.log_partition[rows])
    assert chain.double().dtype == torch.float64


@pytest.mark.usefixtures("path")
def test_probabilities_of_some_pairs_are_those_of_the_dense_chain():
    flat, lengths, pairs = make()
    chain, other = PairChain(flat, lengths, pairs), dense(flat, lengths, pairs)
    previous, tags = torch.tensor([0, 0, 2, 1]), torch.tensor([0, 2, 1, 2])  # 2 is not after 0
    found = chain.marginals_of(previous, tags)
    assert torch.allclose(found, other.pairwise_marginals[..., previous, tags])
    assert torch.allclose(other.marginals_of(previous, tags), found)
    firsts = torch.cumsum(lengths, 0) - lengths
    starts = chain.flat_marginals[firsts][:, pairs.begins[:-1]]
    assert torch.allclose(starts, other.marginals[:, 0])
    scores = chain.potentials_of(previous, tags)
    assert torch.equal(scores[:, 0], other.potentials[:, 0, 0, tags])
    inside = torch.arange(scores.shape[1])[None] < lengths[:, None]
    inside[:, 0] = False
    assert torch.equal(scores[inside], other.potentials[inside][:, previous, tags])
    assert torch.equal(scores[inside], other.potentials_of(previous, tags)[inside])
    assert set(zip(*map(torch.Tensor.tolist, chain.possible))) < set(
        zip(*map(torch.Tensor.tolist, other.possible))
    )


def test_split_and_join_are_inverse():
    flat, lengths, pairs = make()
    chain = PairChain(flat, lengths, pairs)
    joined = join(chain.split())
    assert isinstance(joined, PairChain) and torch.equal(joined.flat, flat)
    assert torch.equal(joined.lengths, lengths)
    other = join(dense(flat, lengths, pairs).split())
    assert torch.allclose(other.log_partition, chain.log_partition)


def test_chains_over_other_tags_are_joined_too():
    flat, lengths, pairs = make()
    chain, two_tags = PairChain(flat, lengths, pairs), PairChain(*make(legal=LEGAL[:2, :2]))
    joined = join([two_tags, chain])
    parts = torch.cat([two_tags.log_partition, chain.log_partition])
    assert torch.allclose(joined.log_partition, parts)
    assert joined.shape == (6, 4, 4)


@pytest.mark.usefixtures("path")
def test_gradients_are_those_of_the_dense_chain():
    flat, lengths, pairs = make()
    tags = dense(flat, lengths, pairs).argmax
    gradients = []
    for build in (PairChain, dense):
        potentials = flat.clone().requires_grad_()
        chain = build(potentials, lengths, pairs)
        (chain.log_prob(tags).sum() + 0.5 * chain.entropy.sum()).backward()
        gradients.append(potentials.grad)
    assert torch.allclose(*gradients)


def test_second_derivatives():
    flat, lengths, pairs = make()

    def log_partition(potentials):
        return PairChain(potentials, lengths, pairs).log_partition

    assert torch.autograd.gradgradcheck(log_partition, flat.requires_grad_())


@pytest.mark.usefixtures("path")
def test_evidence_is_that_of_the_dense_chain():
    flat, lengths, pairs = make()
    chain, other = PairChain(flat, lengths, pairs), dense(flat, lengths, pairs)
    allowed = torch.ones(3, 4, 4, dtype=torch.bool)
    allowed[0, 1, 2:] = False
    transitions = torch.ones(4, 4, dtype=torch.bool)
    transitions[2, 1] = False
    masks = [
        {"allowed": allowed},
        {"transitions": transitions},
        {"transitions": transitions.expand(3, 4, 4, 4)},
        {"start": torch.tensor([True, True, False, True])},
        {"end": torch.tensor([True, False, False, True])},
    ]
    for mask in masks:
        ours, theirs = chain.constrain(**mask), other.constrain(**mask)
        assert torch.allclose(ours.log_partition, theirs.log_partition), mask
        assert [t.tolist() for t in ours.argmax] == [t.tolist() for t in theirs.argmax]


def test_illegal_tags_have_the_probability_0():
    flat, lengths, pairs = make()
    chain = PairChain(flat.requires_grad_(), lengths, pairs)
    tags = [torch.tensor([1, 1, 0]), torch.tensor([0]), torch.tensor([0, 0, 0, 0])]  # no 1 after 1
    log_prob = chain.log_prob(tags)
    assert log_prob[0] == -torch.inf and torch.isfinite(log_prob[1:]).all()
    log_prob[1:].sum().backward()
    assert torch.isfinite(flat.grad).all()


def test_a_sentence_without_an_analysis_leaves_the_others_alone():
    flat, lengths, pairs = make()
    flat[1] = -torch.inf
    chain = PairChain(flat.requires_grad_(), lengths, pairs)
    assert chain.log_partition[0] == -torch.inf
    assert chain.marginals[0].eq(0).all() and torch.allclose(
        chain.marginals[2].sum(1), torch.ones(4, dtype=torch.float64)
    )
    with pytest.raises(ValueError, match="sentence"):
        _ = chain.argmax


@given(pairs_and_lengths(5))
@settings(max_examples=60)
def test_any_pairs_and_lengths(drawn):
    legal, lengths, seed = drawn
    flat, sizes, pairs = make(seed=seed, lengths=lengths, legal=legal)
    chain, other = PairChain(flat, sizes, pairs), dense(flat, sizes, pairs)
    assert torch.equal(chain.log_partition, other.log_partition)
    assert torch.allclose(chain.marginals, other.marginals)
    possible = torch.isfinite(other.max)
    for number in possible.nonzero()[:, 0].tolist():
        assert torch.equal(chain._best[1][number], other._best[1][number])
