"""Errors that a user can mend, and the checks of settings that raise them."""

import pickle
from typing import Literal

import pytest

from spacy_psa.errors import InputError, SettingError, check_choice, check_sizes


def test_the_first_size_below_one_is_named():
    check_sizes(width=1, hidden=None)
    with pytest.raises(SettingError, match=r"^hidden is 0: take 1 or more$") as error:
        check_sizes(width=1, hidden=0, layers=-1)
    assert (error.value.setting, error.value.value) == ("hidden", 0)
    assert isinstance(error.value, InputError)


def test_a_wrong_choice_is_named_with_the_right_ones():
    check_choice("shape", "round", Literal["round", "square"])
    with pytest.raises(SettingError, match=r"^shape is 'oval': take one of \('round', 'square'\)$"):
        check_choice("shape", "oval", Literal["round", "square"])


def test_an_error_of_another_process_arrives_as_it_was():
    error = pickle.loads(pickle.dumps(SettingError("size", 4, "take an odd number")))
    assert str(error) == "size is 4: take an odd number"
    assert (error.setting, error.value, error.advice) == ("size", 4, "take an odd number")
