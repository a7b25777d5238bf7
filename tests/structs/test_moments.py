"""Means and variances of counts are those over all analyses, and the derivatives of log Z."""

import pytest
import torch

from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.label_layers import LabelLayers
from spacy_psa.structs.moments import count_moments, span_moments
from spacy_psa.structs.nested_spans import NestedSpans
from spacy_psa.structs.pair_chain import PairChain, TagPairs
from tests.helpers.chains import enumerate_sequences, random_potentials
from tests.helpers.nested import layered_sets, nested_sets, spans_of
from tests.structs.test_nested_spans import random_spans

LENGTHS = torch.tensor([4, 1, 3])
WEIGHTS = torch.tensor([[0.0, 1.0], [1.0, -2.0], [1.0, 0.5]], dtype=torch.float64)


@pytest.mark.parametrize("excluded", [0.0, 0.3])
def test_moments_are_those_of_all_sequences(excluded):
    potentials = random_potentials(LENGTHS, 3, seed=1, excluded=excluded)
    means, variances = count_moments(LinearChain(potentials, LENGTHS), WEIGHTS)
    for row, length in enumerate(LENGTHS.tolist()):
        sequences = enumerate_sequences(potentials[row], length)
        share = torch.tensor([each.score for each in sequences], dtype=torch.float64).softmax(0)
        counts = torch.stack([WEIGHTS[list(each.tags)].sum(0) for each in sequences])
        mean = share @ counts
        torch.testing.assert_close(means[row], mean)
        torch.testing.assert_close(variances[row], share @ (counts - mean) ** 2)


def test_moments_are_the_derivatives_of_log_z_by_a_counting_parameter():
    potentials = random_potentials(LENGTHS, 3, seed=2).nan_to_num(0.0)
    t = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    chain = LinearChain(potentials, LENGTHS).tilted((WEIGHTS @ t).expand(3, 4, 3))
    means, variances = count_moments(LinearChain(potentials, LENGTHS), WEIGHTS)
    for row in range(3):
        (slope,) = torch.autograd.grad(chain.log_partition[row], t, create_graph=True)
        curves = [torch.autograd.grad(each, t, retain_graph=True)[0] for each in slope]
        torch.testing.assert_close(means[row], slope.detach())
        torch.testing.assert_close(variances[row], torch.stack(curves).diag())


def test_a_chain_over_legal_pairs_has_the_same_moments_and_rows_may_have_own_weights():
    legal = torch.tensor([[True, True, False], [True, True, True], [False, True, True]])
    scores = torch.randn(8, int(legal.sum()), generator=torch.Generator().manual_seed(3))
    pairs = PairChain(scores, LENGTHS, TagPairs(legal.numpy()))
    own = torch.stack([WEIGHTS, 2 * WEIGHTS, WEIGHTS])
    dense = LinearChain(pairs.potentials.double(), LENGTHS)
    moments = count_moments(pairs.double(), own)
    for mine, theirs, factor in zip(moments, count_moments(dense, WEIGHTS), (2, 4)):
        scale = torch.tensor([1, factor, 1])[:, None]
        torch.testing.assert_close(mine, theirs * scale)


@pytest.mark.parametrize("excluded", [0.0, 0.3])
@pytest.mark.parametrize(
    ("kind", "sets"), [(NestedSpans, nested_sets), (LabelLayers, layered_sets)]
)
def test_moments_of_spans_are_those_of_all_sets(kind, sets, excluded):
    lengths, weights = [4, 1, 2], torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    scores = random_spans(lengths, 2, 3, excluded=excluded)
    means, variances = span_moments(kind(scores, torch.tensor(lengths), 3), weights)
    rows = iter(scores)
    for b, n in enumerate(lengths):
        own = {span: next(rows) for span in spans_of(n, 3)}
        every = sets(n, 2, 3)
        each = [sum((own[s, e][k - 1] for s, e, k in spans), torch.zeros(())) for spans in every]
        share = torch.stack(each).double().softmax(0)
        counts = torch.stack(
            [sum((weights[k - 1] for *_, k in spans), torch.zeros(2)) for spans in every]
        ).double()
        torch.testing.assert_close(means[b], share @ counts)
        torch.testing.assert_close(variances[b], share @ (counts - means[b]) ** 2)
