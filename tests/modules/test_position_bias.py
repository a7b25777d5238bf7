"""The position bias Ψ, by itself and in position-aware attention."""

import itertools

import pytest
import torch

from spacy_psa.modules.position_bias import PositionBias
from spacy_psa.modules.psa import PositionAwareAttention
from spacy_psa.ragged import mask
from tests.helpers.modules import EXACT, randomised
from tests.helpers.ragged import batch

WIDTH, LENGTHS = 6, [3, 1, 5]
PARTS = ("use_mask", "use_token_bias", "use_gaussian")
CHOICES = [
    {"version": version, **dict(zip(PARTS, on))}
    for version in ("journal", "arxiv")
    for on in itertools.product([False, True], repeat=3)
]


def test_gaussian_bias_of_the_paper():
    _, bias = PositionBias(4, window=10).tables(torch.zeros(1, 4), 11)  # α is 0.5
    assert bias[[0, 1, 10]].tolist() == pytest.approx([0, -0.5 * 0.02, -0.5 * 2.0])


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_psi_is_that_of_position_aware_attention(options):
    """With w = 0 its scores are only Ψ, so the logarithms of its weights differ as Ψ does."""
    attention = randomised(PositionAwareAttention(WIDTH, window=2, **options))
    with torch.no_grad():
        attention.score.zero_()
    bias = PositionBias(WIDTH, window=2, **options).double()
    bias.load_state_dict({name: attention.state_dict()[name] for name in bias.state_dict()})
    x, lengths = batch(LENGTHS, WIDTH)
    psi = bias.psi(x, lengths).masked_fill(~mask(lengths)[:, None], -torch.inf)
    weights = torch.softmax(psi, 2).nan_to_num().masked_fill(~mask(lengths)[..., None], 0)
    torch.testing.assert_close(attention.weights(x, lengths), weights, **EXACT)


def test_position_aware_attention_keeps_the_names_of_its_parameters():
    """Of weights that are saved."""
    journal = {name: tuple(p.shape) for name, p in PositionAwareAttention(4).named_parameters()}
    assert journal == {
        "query.weight": (4, 4),
        "query.bias": (4,),
        "key.weight": (4, 4),
        "score": (4,),
        "distances": (11, 4),
        "global_score": (4,),
        "global_bias": (),
        "mix": (),
    }
    arxiv = {name for name, _ in PositionAwareAttention(4, version="arxiv").named_parameters()}
    assert arxiv == {*journal} - {"global_score", "global_bias"}


def test_a_part_that_is_left_out_has_no_parameters():
    assert not [*PositionBias(4, use_psi=False).parameters()]
    assert {*PositionBias(4, use_token_bias=False).state_dict()} == {"mix"}
