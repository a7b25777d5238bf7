"""The position encoding by sines and cosines."""

import math

import pytest

from spacy_psa.modules.sinusoids import SinusoidalPositions
from tests.helpers.ragged import batch


@pytest.mark.parametrize("width", [1, 6, 7])
def test_sinusoidal_positions_restart_in_each_sentence(width):
    x, lengths = batch([5, 3], width)
    added = SinusoidalPositions(width)(x, lengths) - x
    places = [*range(5), *range(3)]
    for row, place in zip(added.tolist(), places, strict=True):
        for column, value in enumerate(row):
            angle = place / 10000 ** (2 * (column // 2) / width)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert value == pytest.approx(expected, abs=1e-5)


def test_sinusoidal_positions_have_no_parameters():
    assert not SinusoidalPositions(8).state_dict()
