"""A chain with emissions and transitions apart against the chain of their sums."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings

from spacy_psa import kernels
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs import emission_chain
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.emission_chain import EmissionChain
from spacy_psa.structs.pair_chain import PairChain, TagPairs, join
from tests.helpers.chains import pairs_and_lengths
from tests.helpers.waiting import Launches

LENGTHS = torch.tensor([3, 1, 6, 5])
SCHEMES = [SpanScheme("abc", "BIOES"), SpanScheme("abc", "BIO")]


def make(legal, lengths=LENGTHS, dtype=torch.float64, spread=2.0, excluded=0.0, seed=0):
    torch.manual_seed(seed)
    pairs = TagPairs(legal)
    emissions = 3 * torch.randn(int(lengths.sum()), pairs.tags, dtype=dtype)
    emissions = emissions.masked_fill(torch.rand(emissions.shape) < excluded, -torch.inf)
    transitions = spread * torch.randn(pairs.tags, pairs.tags, dtype=dtype)
    return emissions, transitions, lengths, pairs


def summed(chain):
    return PairChain(chain.flat, chain.lengths, chain.pairs)


@pytest.fixture(params=SCHEMES, ids=["BIOES", "BIO"])
def given_chain(request):
    return make(request.param.legal().transitions)


def test_the_block_of_a_scheme_is_between_spans():
    for scheme in SCHEMES:
        closes, opens = TagPairs(scheme.legal().transitions).block
        ends = "OES" if scheme.tag_format == "BIOES" else "OBI"
        assert [scheme.tags[tag][0] in ends for tag in closes] == [True] * len(closes)
        assert len(closes) == sum(tag[0] in ends for tag in scheme.tags)
        starts = [i for i, tag in enumerate(scheme.tags) if tag[0] in "OBS"]
        assert opens.tolist() == starts


def test_the_partition_is_that_of_all_sequences(given_chain):
    emissions, transitions, _, pairs = given_chain
    chain = EmissionChain(*given_chain).select(torch.tensor([0]))
    scores = []
    for tags in torch.cartesian_prod(*[torch.arange(pairs.tags)] * 3):
        steps = list(pairwise(tags))
        if all(pairs.places[step] < len(pairs) for step in steps):
            between = sum(transitions[step] for step in steps)
            scores.append(emissions[torch.arange(3), tags].sum() + between)
    assert torch.allclose(chain.log_partition[0], torch.stack(scores).logsumexp(0))
    assert math.isclose(float(chain.max[0]), float(max(scores)))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("spread", [2.0, 1000.0])  # the second is too wide for scaled sums
def test_answers_are_those_of_the_sums(given_chain, compiled, spread, monkeypatch):
    monkeypatch.setattr(kernels, "available", lambda: compiled)
    emissions, transitions, lengths, pairs = given_chain
    chain = EmissionChain(emissions, spread / 2 * transitions, lengths, pairs)
    other = summed(chain)
    assert chain.shape == other.shape and chain.dtype == other.dtype
    assert torch.allclose(chain.log_partition, other.log_partition)
    assert torch.allclose(chain.marginals, other.marginals)
    assert torch.allclose(chain.entropy, other.entropy, atol=1e-8)
    previous, tags = torch.tensor([0, 0, 2, 1]), torch.tensor([0, 2, 1, 2])
    assert torch.allclose(chain.marginals_of(previous, tags), other.marginals_of(previous, tags))
    dense, inner = LinearChain(other.potentials, lengths), torch.arange(1, pairs.tags)
    for before, after in ((inner, inner), (inner, inner.flip(0)), (inner[:3], inner[:3] * 0)):
        wanted = dense.marginals_but(before, after)
        assert torch.allclose(other.marginals_but(before, after), wanted)
        assert torch.allclose(chain.marginals_but(before, after), wanted)
    assert torch.allclose(chain.score(other.argmax), other.max)
    for uniform in (chain.uniform(), other.uniform()):
        ours, theirs = (c.expected_score(uniform) for c in (chain, other))
        assert torch.allclose(ours, theirs)
    for ours, theirs in zip(chain.kbest(4), other.kbest(4), strict=True):
        assert [tags.tolist() for _, tags in ours] == [tags.tolist() for _, tags in theirs]
    scores = torch.randn(4, 6, pairs.tags, dtype=torch.float64)
    ours, theirs = chain.tilted(scores), other.tilted(scores)
    assert torch.allclose(ours.log_partition, theirs.log_partition)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("excluded", [0.0, 0.3])
@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0, 300.0])
def test_the_best_sequence_is_that_of_the_sums_to_the_bit(dtype, excluded, spread):
    legal = SpanScheme("abcdefgh").legal().transitions
    lengths = torch.tensor([20, 1, 13, 40])
    chain = EmissionChain(*make(legal, lengths, dtype, spread, excluded))
    scores, tags = chain._best
    wanted, others = summed(chain)._best
    assert torch.equal(scores, wanted)
    assert all(map(torch.equal, tags, others))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("excluded", [0.0, 0.3])
@pytest.mark.parametrize("spread", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("k", [1, 7])
def test_the_k_best_sequences_are_those_of_the_sums_to_the_bit(dtype, excluded, spread, k):
    legal = SpanScheme("abcdefgh").legal().transitions
    lengths = torch.tensor([20, 1, 13, 2])
    chain = EmissionChain(*make(legal, lengths, dtype, spread, excluded))
    scores, ranked = chain._kbest(k)
    wanted, others = summed(chain)._kbest(k)
    assert torch.equal(scores, wanted)
    for tags, theirs in zip(ranked, others, strict=True):
        assert all(map(torch.equal, tags, theirs))


@pytest.mark.parametrize("compiled", [True, False])
def test_equal_sequences_have_the_order_of_the_sums(given_chain, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(kernels, "available", lambda: False)
    chain = EmissionChain(*given_chain).uniform()
    for ours, theirs in zip(chain.kbest(9), summed(chain).kbest(9), strict=True):
        assert [tags.tolist() for _, tags in ours] == [tags.tolist() for _, tags in theirs]


def test_samples_are_those_of_the_sums(given_chain):
    chain = EmissionChain(*given_chain)
    dense = LinearChain(chain.potentials, chain.lengths)
    ours, theirs = (c.sample(50, torch.Generator().manual_seed(0)) for c in (chain, dense))
    for own, others in zip(ours, theirs, strict=True):
        assert all(map(torch.equal, own, others))


@pytest.mark.parametrize("spread", [2.0, 1000.0])
def test_gradients_are_those_of_the_sums(given_chain, spread):
    emissions, transitions, lengths, pairs = given_chain
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    uniform = EmissionChain(*given_chain).uniform()
    gradients = []
    for build in (lambda chain: chain, summed):
        leaves = [emissions.clone(), spread / 2 * transitions]
        for leaf in leaves:
            leaf.requires_grad_()
        chain = build(EmissionChain(*leaves, lengths, pairs))
        best = build(EmissionChain(*given_chain)).argmax
        loss = chain.log_prob(best) - chain.expected_score(uniform) + chain.entropy
        (loss * weights).sum().backward()
        gradients.append([leaf.grad for leaf in leaves])
    for ours, theirs in zip(*gradients):
        assert torch.allclose(ours, theirs)


def test_on_a_gpu_the_sums_need_as_many_launches_for_long_sentences(given_chain, monkeypatch):
    pytest.importorskip("numba")
    emissions, transitions, _, pairs = given_chain

    def step(longest):
        leaves = emissions[:longest].clone(), transitions.clone()
        chain = EmissionChain(*(x.requires_grad_() for x in leaves), torch.tensor([longest]), pairs)
        with Launches() as launches:
            chain.log_partition.sum().backward()
        return launches.count, [x.grad for x in leaves]

    short, long = step(3)[0], step(15)
    assert long[0] > 2 * short
    monkeypatch.setattr(EmissionChain, "_sums_apply", False)  # as on a GPU
    short, by_pairs = step(3)[0], step(15)
    assert by_pairs[0] == short
    for ours, theirs in zip(by_pairs[1], long[1], strict=True):
        torch.testing.assert_close(ours, theirs)


def test_second_derivatives(given_chain):
    emissions, transitions, _, pairs = given_chain
    lengths = torch.tensor([2, 1])

    def log_partition(*leaves):
        return EmissionChain(*leaves, lengths, pairs).log_partition

    leaves = emissions[:3].clone().requires_grad_(), transitions.clone().requires_grad_()
    assert torch.autograd.gradgradcheck(log_partition, leaves)


def test_evidence_is_that_of_the_sums(given_chain):
    chain = EmissionChain(*given_chain)
    tags = chain.pairs.tags
    allowed = torch.ones(4, 6, tags, dtype=torch.bool)
    allowed[0, 1, 2:] = allowed[2, 3, :1] = False
    transitions = torch.rand(tags, tags) < 0.9
    possible = torch.arange(tags) != 2
    for mask in (
        {"allowed": allowed, "start": possible, "end": possible},
        {"transitions": transitions},
        {"transitions": transitions.expand(4, 6, tags, tags)},
    ):
        ours, theirs = chain.constrain(**mask), summed(chain).constrain(**mask)
        assert torch.allclose(ours.log_partition, theirs.log_partition), mask
        assert torch.allclose(ours.marginals, theirs.marginals), mask
        assert all(map(torch.equal, ours.argmax, theirs.argmax)), mask


def test_a_sentence_without_an_analysis_leaves_the_others_alone(given_chain):
    emissions, transitions, lengths, pairs = given_chain
    emissions[1] = -torch.inf
    chain = EmissionChain(emissions.requires_grad_(), transitions, lengths, pairs)
    assert chain.log_partition[0] == -torch.inf and torch.isfinite(chain.log_partition[1:]).all()
    chain.log_partition[1:].sum().backward()
    assert torch.isfinite(emissions.grad).all()
    marginals = EmissionChain(emissions.detach(), transitions, lengths, pairs).marginals
    assert not marginals[0].any() and torch.allclose(
        marginals[2].sum(1).double(), torch.ones(6).double()
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_answers_need_no_potentials(scheme, monkeypatch):
    pytest.importorskip("numba")
    chain = EmissionChain(*make(scheme.legal().transitions))
    monkeypatch.setattr(EmissionChain, "flat", property(lambda _: pytest.fail("all potentials")))
    begins, insides = (torch.from_numpy(scheme.columns(prefix)) for prefix in "BI")
    assert chain.marginals_but(begins, insides).sum() > 0
    assert len(chain.argmax) == len(chain.kbest(3)) == len(chain.sample(2)) == len(chain.entropy)


def test_split_parts_and_join(given_chain, monkeypatch):
    chain = EmissionChain(*given_chain)
    monkeypatch.setattr(emission_chain, "NUMBERS", 2 * 6 * chain.pairs.tags**2)
    parts = list(chain.parts())
    assert [len(part.lengths) for part in parts] == [2, 2]
    dense = LinearChain(chain.potentials, chain.lengths)
    assert list(dense.parts()) == [dense]
    for some in (parts, chain.split()):
        joined = join(some)
        assert isinstance(joined, EmissionChain)
        assert torch.equal(joined.emissions, chain.emissions)
    other = EmissionChain(chain.emissions, chain.transitions + 1, chain.lengths, chain.pairs)
    both = join([chain, other])
    assert torch.allclose(both.log_partition, torch.cat([chain.log_partition, other.log_partition]))


def test_other_shapes_are_an_error(given_chain):
    emissions, transitions, lengths, pairs = given_chain
    for wrong in ((emissions[1:], transitions), (emissions, transitions[1:])):
        with pytest.raises(ValueError, match="shapes of emissions and transitions"):
            EmissionChain(*wrong, lengths, pairs)


@given(pairs_and_lengths(6))
@settings(max_examples=60)
def test_any_pairs_and_lengths(drawn):
    legal, lengths, seed = drawn
    chain = EmissionChain(*make(legal, lengths, excluded=0.1, seed=seed))
    other = summed(chain)
    assert torch.allclose(chain.log_partition, other.log_partition)
    assert torch.allclose(chain.marginals, other.marginals)
    assert torch.equal(chain._best[0], other._best[0])
    assert all(map(torch.equal, chain._best[1], other._best[1]))
