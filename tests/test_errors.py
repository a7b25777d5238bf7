"""Errors that a user can mend, and the checks of settings that raise them."""

import math
import pickle
from typing import Literal

import pytest

from spacy_psa.errors import (
    InputError,
    SettingError,
    check_amounts,
    check_choice,
    check_rates,
    check_sizes,
)


def test_the_first_size_below_one_is_named():
    check_sizes(width=1, hidden=None)
    with pytest.raises(SettingError, match=r"^hidden is 0: it must be 1 or more$") as error:
        check_sizes(width=1, hidden=0, layers=-1)
    assert (error.value.setting, error.value.value) == ("hidden", 0)
    assert isinstance(error.value, InputError)


def test_a_wrong_choice_is_named_with_the_right_ones():
    check_choice("shape", "round", Literal["round", "square"])
    with pytest.raises(
        SettingError, match=r"^shape is 'oval': it must be one of \('round', 'square'\)$"
    ):
        check_choice("shape", "oval", Literal["round", "square"])


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, "5", None, True])
def test_an_amount_is_a_finite_number_of_at_least_zero(value):
    check_amounts(weight=0, limit=2.5)
    with pytest.raises(SettingError, match=r"^weight is .*: it must be 0 or more$"):
        check_amounts(weight=value)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, "0.5", None, False])
def test_a_rate_is_a_number_from_zero_to_one(value):
    check_rates(dropout=0, share=1.0)
    with pytest.raises(SettingError, match=r"^dropout is .*: it must be a number from 0 to 1$"):
        check_rates(dropout=value)


def test_an_error_of_another_process_arrives_as_it_was():
    error = pickle.loads(pickle.dumps(SettingError("size", 4, "it must be odd")))
    assert str(error) == "size is 4: it must be odd"
    assert (error.setting, error.value, error.advice) == ("size", 4, "it must be odd")
