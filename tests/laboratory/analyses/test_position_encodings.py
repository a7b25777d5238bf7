"""Products of position encodings, against Yan2019 Eqs. 10 to 15."""

from math import cos

import numpy
import pytest
import torch

from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses.position_encodings import (
    compare_encodings,
    draw_encodings,
    products,
)


@pytest.mark.parametrize("place", [0, 7, 100])
def test_without_a_projection_the_product_is_a_sum_of_cosines_of_the_distance(place):
    width, distance = 8, 20
    expected = [
        sum(cos(k * 10000 ** (-2 * i / width)) for i in range(width // 2))
        for k in range(-distance, distance + 1)
    ]
    assert products(width, distance, place) == pytest.approx(expected)


def test_it_does_not_know_the_direction_and_a_projection_does_not_know_the_distance():
    found = compare_encodings([32], 30)
    plain = numpy.array(found["plain"]["32"])
    numpy.testing.assert_allclose(plain, plain[::-1])
    assert found["distances"][plain.argmax()] == 0
    for values in map(numpy.array, found["projected"]):
        assert numpy.abs(values - values[::-1]).max() > 0.1
    weight = torch.randn(32, 32, generator=torch.Generator().manual_seed(3))
    early, late = (products(32, 30, place, weight) for place in (0, 50))
    assert numpy.abs(numpy.subtract(early, late)).max() > 0.1


def test_the_identity_is_no_projection():
    assert products(6, 5, 2, torch.eye(6)) == pytest.approx(products(6, 5, 2))


def test_draws_are_the_same_each_time_and_are_drawn():
    found = compare_encodings([16, 32], 10, draws=3)
    assert found == compare_encodings([16, 32], 10, draws=3)
    above, below = draw_encodings(found).axes
    assert len(above.lines) == 2 and len(below.lines) == 3
    assert list(above.lines[1].get_ydata()) == found["plain"]["32"]


def test_a_width_below_one_is_an_error():
    for width in (0, -4):
        with pytest.raises(InputError, match=f"width is {width}: it must be 1 or more"):
            compare_encodings([width], 3)
