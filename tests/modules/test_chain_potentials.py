"""Potentials of the heads against their formulas, and the chains that they make."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.modules.chain_potentials import Emission, EmissionTransition, LabelPair
from spacy_psa.ragged import pad
from spacy_psa.structs.chain import LinearChain
from tests.helpers.modules import gradcheck, parameter_count, randomised
from tests.helpers.ragged import batch, one_by_one

D, K = 4, 3
batches = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def head_of(make, labels=K):
    return randomised(make(D, labels), scale=1.0)


def by_pair(head):
    """W[y', y] and b[y', y] of a `LabelPair`."""
    return head.pair.weight.detach().view(K, K, D), head.pair.bias.detach().view(K, K)


def of_start(head):
    return head.start.weight.detach(), head.start.bias.detach()


def chain_of(head, z, lengths, labels=K):
    return LinearChain(pad(head(z, lengths).view(-1, labels, labels), lengths), lengths)


def paired(lengths):
    """(flat token, whether it is its sentence's first)."""
    return enumerate(t == 0 for n in lengths for t in range(n))


@settings(max_examples=30)
@given(batches)
def test_label_pair_potentials_equal_equation_2(lengths):
    head = head_of(LabelPair)
    z, n = batch(lengths, D)
    potentials = head(z, n)
    assert potentials.shape == (sum(lengths), K * K)
    (weights, bias), (start_weights, start_bias) = by_pair(head), of_start(head)
    for j, first in paired(lengths):
        for before, tag in itertools.product(range(K), range(K)):
            if first and before:
                continue  # not read
            w, b = weights[before, tag], bias[before, tag]
            if first:  # the start is a label of its own
                w, b = start_weights[tag], start_bias[tag]
            expected = sum(float(w[d] * z[j, d]) for d in range(D)) + float(b)
            assert potentials[j, before * K + tag].item() == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30)
@given(batches)
def test_emission_and_transition_equal_a_chain_from_emissions(lengths):
    head = head_of(EmissionTransition)
    z, n = batch(lengths, D)
    ours = chain_of(head, z, n)
    emissions = pad(head.emission(z), n)
    theirs = LinearChain.from_emissions(emissions, n, head.transition, head.start, head.end)
    torch.testing.assert_close(ours.log_partition, theirs.log_partition, rtol=0, atol=1e-10)
    torch.testing.assert_close(ours.marginals, theirs.marginals, rtol=0, atol=1e-10)
    for mine, right in zip(ours.argmax, theirs.argmax, strict=True):
        assert torch.equal(mine, right)


@pytest.mark.parametrize("make", [LabelPair, EmissionTransition])
def test_all_tag_sequences_of_four_tokens_sum_to_one(make):
    z, n = batch([4], D)
    chain = chain_of(head_of(make), z, n)
    total = sum(
        chain.log_prob(torch.tensor([tags])).exp().item()
        for tags in itertools.product(range(K), repeat=4)
    )
    assert total == pytest.approx(1.0, abs=1e-10)


def test_probability_of_a_sequence_equals_equation_1():
    """p(y | z) = Π_j φ(y_{j-1}, y_j, z_j) / Σ_y' Π_j φ(y'_{j-1}, y'_j, z_j), by hand."""
    head = head_of(LabelPair)
    z, n = batch([3], D)
    (weights, bias), (start_weights, start_bias) = by_pair(head), of_start(head)

    def product(tags):
        score = float(start_weights[tags[0]] @ z[0] + start_bias[tags[0]])
        for j in (1, 2):
            pair = tags[j - 1], tags[j]
            score += float(weights[pair] @ z[j] + bias[pair])
        return math.exp(score)

    total = sum(product(tags) for tags in itertools.product(range(K), repeat=3))
    expected = math.log(product((2, 0, 1)) / total)
    got = chain_of(head, z, n).log_prob(torch.tensor([[2, 0, 1]])).item()
    assert got == pytest.approx(expected, abs=1e-10)


@settings(max_examples=20)
@given(batches)
def test_softmax_rows_are_log_probabilities(lengths):
    head = head_of(Emission)
    z, n = batch(lengths, D)
    rows = head(z, n)
    assert rows.shape == (sum(lengths), K)
    torch.testing.assert_close(rows.exp().sum(1), torch.ones(len(z), dtype=torch.float64))
    scores = head.emission(z)
    torch.testing.assert_close(rows[:, 0] - rows[:, 1], scores[:, 0] - scores[:, 1])


def test_softmax_tags_are_independent_in_their_chain():
    head = head_of(Emission)
    z, n = batch([3, 2], D)
    chain = LinearChain.from_emissions(pad(head(z, n), n), n)
    torch.testing.assert_close(chain.log_partition, torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(chain.marginals[0], head(z, n)[:3].exp())


@pytest.mark.parametrize("make", [LabelPair, EmissionTransition, Emission])
def test_a_sentence_does_not_depend_on_its_batch(make):
    head = head_of(make)
    z, n = batch([2, 1, 3], D)
    torch.testing.assert_close(head(z, n), one_by_one(head, z, n))


@pytest.mark.parametrize("make", [LabelPair, EmissionTransition])
def test_every_parameter_learns_from_the_likelihood(make):
    head = head_of(make)
    z, n = batch([3, 1], D)
    z.requires_grad_()
    tags = torch.tensor([[0, 1, 2], [1, 0, 0]])
    parameters = [z, *head.parameters()]
    gradients = torch.autograd.grad(-chain_of(head, z, n).log_prob(tags).sum(), parameters)
    for gradient in gradients:
        assert gradient.isfinite().all() and gradient.any()


@pytest.mark.parametrize("make", [LabelPair, EmissionTransition, Emission])
def test_gradients_equal_finite_differences(make):
    head = head_of(make)
    z, n = batch([2, 1], D)
    assert gradcheck(head, z, n, fast_mode=False)


def test_weights_start_glorot_for_a_label_pair_and_biases_zero():
    torch.manual_seed(0)
    head = LabelPair(30, 20)
    bound = math.sqrt(6 / (30 + 20))
    for layer in (head.pair, head.start):
        assert 0.97 * bound < layer.weight.detach().abs().max() <= bound
        assert not layer.bias.any()


def test_parameter_counts_are_those_of_the_docstrings():
    assert parameter_count(EmissionTransition(D, K)) == K * (D + K + 3)
    assert parameter_count(LabelPair(D, K)) == (K * K + K) * (D + 1)
    assert parameter_count(Emission(D, K)) == K * (D + 1)


@pytest.mark.parametrize("labels", [1, 73])
@pytest.mark.parametrize("make", [LabelPair, EmissionTransition])
def test_any_number_of_labels_makes_a_chain(make, labels):
    z, n = batch([3, 2], D)
    chain = chain_of(head_of(make, labels), z, n, labels)
    torch.testing.assert_close(
        chain.marginals.sum(2),
        torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]], dtype=torch.float64),
    )


PAIRS = [[0, 0], [2, 0], [0, 1], [1, 2], [2, 2]]  # (previous, tag) by tag; legal with 3 tags


@settings(max_examples=20)
@given(batches, st.sampled_from([LabelPair, EmissionTransition]))
def test_scores_of_legal_pairs_are_those_of_the_whole_head(lengths, make):
    whole, some = head_of(make), make(D, K, PAIRS).double()
    kept = torch.tensor([before * K + tag for before, tag in PAIRS])
    weights = dict(whole.state_dict())
    for name in ("pair.weight", "pair.bias"):
        if name in weights:
            weights[name] = weights[name][kept]
    some.load_state_dict(weights)
    z, n = batch(lengths, D)
    theirs, ours = whole(z, n), some(z, n)
    firsts = [PAIRS.index(next(pair for pair in PAIRS if pair[1] == tag)) for tag in range(K)]
    for j, first in paired(lengths):
        if first:
            torch.testing.assert_close(ours[j, firsts], theirs[j, :K])
        else:
            torch.testing.assert_close(ours[j], theirs[j, kept])


def test_weights_of_legal_pairs_start_as_those_of_the_whole_head():
    torch.manual_seed(0)
    whole, after = LabelPair(D, K), torch.rand(1)
    torch.manual_seed(0)
    some, after_some = LabelPair(D, K, PAIRS), torch.rand(1)
    kept = [before * K + tag for before, tag in PAIRS]
    assert torch.equal(some.pair.weight, whole.pair.weight[kept])
    assert torch.equal(some.start.weight, whole.start.weight)
    assert torch.equal(after_some, after)  # what is made later has the same weights too
    assert parameter_count(some) == (len(PAIRS) + K) * (D + 1)


def uncertainty_of(potentials):
    """The entropy of p(y) ∝ Σ_y' φ(y', y), as a share of log K; potentials[y'][y] are logs."""
    sums = [sum(math.exp(row[tag]) for row in potentials) for tag in range(K)]
    shares = [each / sum(sums) for each in sums if each]
    return -sum(p * math.log(p) for p in shares) / math.log(K)


@pytest.mark.parametrize("pairs", [None, PAIRS])
@pytest.mark.parametrize("make", [LabelPair, EmissionTransition])
def test_uncertainty_is_the_entropy_of_a_tag_whatever_stands_before_it(make, pairs):
    head = randomised(make(D, K, pairs), scale=1.0)
    z, _ = batch([6], D)
    found = head.uncertainty(z)
    # As second tokens, so that nothing is added for the start or the end of a sentence.
    scores = head(z.repeat_interleave(3, 0), torch.full((6,), 3)).view(6, 3, -1)[:, 1]
    for each, own in zip(found, scores.tolist(), strict=True):
        cells = itertools.product(range(K), range(K)) if pairs is None else PAIRS
        potentials = [[-math.inf] * K for _ in range(K)]
        for (before, tag), score in zip(cells, own, strict=True):
            potentials[before][tag] = score
        assert each.item() == pytest.approx(uncertainty_of(potentials), abs=1e-10)


def test_uncertainty_of_independent_tags_is_the_entropy_of_their_probabilities():
    head = head_of(Emission)
    z, n = batch([5], D)
    expected = [uncertainty_of([row]) for row in head(z, n).tolist()]
    torch.testing.assert_close(head.uncertainty(z), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("labels", [1, 5])
@pytest.mark.parametrize("make", [LabelPair, EmissionTransition, Emission])
def test_uncertainty_is_from_0_to_1(make, labels):
    head = make(D, labels)
    for weights in head.parameters():
        torch.nn.init.zeros_(weights)
    z, _ = batch([4], D, dtype=torch.float32)
    torch.testing.assert_close(head.uncertainty(z), torch.full((4,), float(labels > 1)))
    layer = head.pair if make is LabelPair else head.emission
    torch.nn.init.constant_(layer.bias[:1], 1000.0)
    torch.testing.assert_close(head.uncertainty(z), torch.zeros(4))
