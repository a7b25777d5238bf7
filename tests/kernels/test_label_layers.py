"""The compiled recursions over spans of layers against their semiring twin."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")

from spacy_psa.structs.label_layers import LabelLayers
from tests.helpers.structs import on_both_paths, quick
from tests.structs.test_nested_spans import random_spans

batches = st.lists(st.integers(1, 6), min_size=1, max_size=3)


def constrained(scores, lengths, longest):
    """Require the first token to be in a span of the first label."""
    dist = LabelLayers(scores, torch.tensor(lengths), longest)
    return dist.constrain(required=[[(0, 1, 1)] for _ in lengths])


@quick
@given(
    lengths=batches,
    labels=st.integers(1, 3),
    longest=st.sampled_from([None, 1, 2]),
    excluded=st.sampled_from([0.0, 0.3]),
    scale=st.sampled_from([0.1, 3.0, 2000.0]),
    evidence=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_both_paths_agree(lengths, labels, longest, excluded, scale, evidence, seed):
    make = (
        constrained
        if evidence
        else lambda *given: LabelLayers(given[0], torch.tensor(given[1]), given[2])
    )

    def compute():
        scores = scale * random_spans(lengths, labels, longest, excluded=excluded, seed=seed)
        dist = make(scores, lengths, longest)
        values = [dist.log_partition, dist.max, dist.marginals]
        weight = torch.linspace(-1, 1, len(lengths), dtype=torch.float64)
        make(scores.requires_grad_(), lengths, longest).log_partition.backward(weight)
        return [*values, scores.grad], dist._best[1]

    (ours, sets), (theirs, same) = on_both_paths(compute)
    assert sets == same
    for our, their in zip(ours, theirs, strict=True):
        assert not our.isnan().any()
        torch.testing.assert_close(our, their, rtol=1e-9, atol=1e-9)


@quick
@given(lengths=batches, labels=st.integers(1, 3), seed=st.integers(0, 10_000))
def test_both_paths_choose_the_same_among_many_ties(lengths, labels, seed):
    spans = random_spans(lengths, labels, seed=seed)
    ours, theirs = on_both_paths(
        lambda: LabelLayers((spans > 0).float(), torch.tensor(lengths)).argmax
    )
    assert ours == theirs


def test_sentences_of_a_batch_do_not_touch_each_other():
    lengths = [5, 1, 7, 2]
    scores = random_spans(lengths, 3, 4)
    scores[-3:] = -torch.inf
    together = LabelLayers(scores, torch.tensor(lengths), 4).constrain(
        required=[[], [], [], [(0, 1, 1)]]  # which is not possible
    )
    assert together.log_partition[3] == -torch.inf and together._best[1][3] == []
    for b, alone in enumerate(together.split()):
        assert together.log_partition[b] == alone.log_partition[0]
        assert together._best[1][b] == alone._best[1][0]
        assert torch.equal(together.marginals[together.sentence == b], alone.marginals)
