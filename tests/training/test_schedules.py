"""The learning rate of the paper: lr_t = lr_0 / (1 + 0.05 t), t = epochs completed."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import registry

from spacy_psa.errors import InputError
from spacy_psa.training.schedules import inverse_decay


def rate_at(epoch, steps_per_epoch=1405):
    schedule = inverse_decay(0.015, 0.05, steps_per_epoch)
    return next(islice(schedule, epoch * steps_per_epoch, None))


RATES = {0: 0.015, 1: 0.015 / 1.05, 10: 0.010, 20: 0.0075}


@pytest.mark.parametrize(("epoch", "rate"), RATES.items())
def test_the_rates_of_the_paper(epoch, rate):
    assert rate_at(epoch) == pytest.approx(rate, rel=1e-12)


@given(st.floats(1e-4, 1.0), st.floats(0.0, 1.0), st.integers(1, 7))
def test_the_rate_changes_at_the_end_of_an_epoch_only(initial, decay, steps):
    rates = list(islice(inverse_decay(initial, decay, steps), 4 * steps))
    for step, rate in enumerate(rates):
        assert rate == pytest.approx(initial / (1 + decay * (step // steps)))
    assert len({*rates}) <= 4


def test_two_schedules_do_not_share_their_steps():
    first, second = (inverse_decay(1.0, 1.0, 1) for _ in range(2))
    assert [next(first), next(first), next(second)] == [1.0, 0.5, 1.0]


@pytest.mark.parametrize("steps", [0, -1])
def test_bad_steps_are_refused_at_once(steps):
    with pytest.raises(InputError, match=rf"steps_per_epoch is {steps}"):
        inverse_decay(0.015, 0.05, steps)


def test_a_config_finds_the_schedule():
    config = {
        "@schedules": "spacy-psa.inverse_decay.v1",
        "initial_rate": 0.2,
        "decay": 0.5,
        "steps_per_epoch": 2,
    }
    schedule = registry.resolve({"schedule": config})["schedule"]
    assert list(islice(schedule, 5)) == pytest.approx([0.2, 0.2, 0.2 / 1.5, 0.2 / 1.5, 0.1])
