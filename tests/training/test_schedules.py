"""The learning rates of the papers, update by update."""

import math
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import registry

from spacy_psa.errors import InputError
from spacy_psa.training.optimizers import sgd
from spacy_psa.training.schedules import cosine, inverse_decay, triangular

# Decay by epochs: lr_t = lr_0 / (1 + 0.05 t), t = epochs completed (Wei2020)


def rate_at(epoch, steps_per_epoch=1405):
    schedule = inverse_decay(0.015, 0.05, steps_per_epoch)
    return next(islice(schedule, epoch * steps_per_epoch, None))


RATES = {0: 0.015, 1: 0.015 / 1.05, 10: 0.010, 20: 0.0075}


@pytest.mark.parametrize(("epoch", "rate"), RATES.items())
def test_the_rates_that_decay_are_those_of_the_paper(epoch, rate):
    assert rate_at(epoch) == pytest.approx(rate, rel=1e-12)


@given(st.floats(1e-4, 1.0), st.floats(0.0, 1.0), st.integers(1, 7))
def test_the_rate_decays_at_the_end_of_an_epoch_only(initial, decay, steps):
    rates = list(islice(inverse_decay(initial, decay, steps), 4 * steps))
    for step, rate in enumerate(rates):
        assert rate == pytest.approx(initial / (1 + decay * (step // steps)))
    assert len({*rates}) <= 4


def test_two_schedules_do_not_share_their_steps():
    first, second = (inverse_decay(1.0, 1.0, 1) for _ in range(2))
    assert [next(first), next(first), next(second)] == [1.0, 0.5, 1.0]


@pytest.mark.parametrize("steps", [0, -1])
def test_decay_over_no_steps_is_refused_at_once(steps):
    with pytest.raises(InputError, match=rf"steps_per_epoch is {steps}"):
        inverse_decay(0.015, 0.05, steps)


def test_a_config_finds_the_decay():
    config = {
        "@schedules": "spacy-psa.inverse_decay.v1",
        "initial_rate": 0.2,
        "decay": 0.5,
        "steps_per_epoch": 2,
    }
    schedule = registry.resolve({"schedule": config})["schedule"]
    assert list(islice(schedule, 5)) == pytest.approx([0.2, 0.2, 0.2 / 1.5, 0.2 / 1.5, 0.1])


# Up for 1% of the updates, down to 0 for 99% (Yan2019)


UPDATES = 100 * 878  # of Yan2019 on CoNLL-2003


def rate(schedule, update):
    """Of the update that is counted from 1."""
    return next(islice(schedule, update - 1, None))


PAPER = {1: 9e-4 / 878, 439: 4.5e-4, 878: 9e-4, 878 + 43_461: 4.5e-4, UPDATES: 0.0}


@pytest.mark.parametrize(("update", "expected"), PAPER.items())
def test_the_rates_that_rise_and_fall_are_those_of_the_paper(update, expected):
    assert rate(triangular(9e-4, UPDATES), update) == pytest.approx(expected, rel=1e-12)


@given(st.floats(1e-5, 1.0), st.integers(1, 300), st.floats(0.0, 0.99))
def test_the_rates_are_two_straight_lines(top, total, warmup):
    rising = warmup * total
    for update, found in enumerate(islice(triangular(top, total, warmup), total + 5), 1):
        if update <= rising:
            expected = top * update / rising
        else:
            expected = top * max(0.0, (total - update) / (total - rising))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-15)
        assert 0 <= found <= top * (1 + 1e-12)


COSINE = {1: 0.1, 10: 1.0, 40: 0.75, 55: 0.5, 70: 0.25, 100: 0.0, 105: 0.0}


@pytest.mark.parametrize(("update", "expected"), COSINE.items())
def test_after_its_rise_a_rate_falls_as_a_cosine(update, expected):
    assert rate(cosine(1.0, 100, warmup=0.1), update) == pytest.approx(expected, abs=1e-12)


def test_without_warmup_the_rate_only_falls():
    assert list(islice(triangular(1.0, 4, 0.0), 6)) == [0.75, 0.5, 0.25, 0.0, 0.0, 0.0]


def test_an_optimizer_takes_its_rates_from_it_update_by_update():
    optimizer = sgd(triangular(1.0, 4, 0.5))
    seen = []
    for _ in range(5):
        seen.append(optimizer.learn_rate)
        optimizer.step_schedules()
    assert seen == [0.5, 1.0, 0.5, 0.0, 0.0]


@pytest.mark.parametrize("schedule", [cosine, triangular])
@pytest.mark.parametrize(
    ("rate", "total", "warmup", "message"),
    [
        (9e-4, 0, 0.01, "total_steps is 0: it must be 1"),
        (9e-4, -5, 0.01, "total_steps is -5: it must be 1"),
        (9e-4, 10, -0.1, "warmup is -0.1: it must be a number from 0"),
        (9e-4, 10, 1.0, "warmup is 1.0: it must be a number from 0"),
        (-9e-4, 10, 0.01, "max_rate is -0.0009: it must be 0"),
        ("NaN", 10, 0.01, "max_rate is 'NaN': it must be 0"),
    ],
)
def test_a_rise_and_fall_that_is_not_possible_is_refused_at_once(
    schedule, rate, total, warmup, message
):
    with pytest.raises(InputError, match=rf"^{schedule.__name__}.v1: {message}"):
        schedule(rate, total, warmup)


def test_a_fall_that_is_not_possible_is_refused_at_once():
    with pytest.raises(InputError, match=r"^inverse_decay.v1: steps_per_epoch is 0"):
        inverse_decay(0.1, 0.05, 0)
    with pytest.raises(InputError, match=r"^inverse_decay.v1: initial_rate is -0.1"):
        inverse_decay(-0.1, 0.05, 10)


@pytest.mark.parametrize(
    ("name", "second"), [("triangular", 98 / 99), ("cosine", (1 + math.cos(math.pi / 99)) / 2)]
)
def test_a_config_finds_the_rise_and_fall(name, second):
    config = {"@schedules": f"spacy-psa.{name}.v1", "max_rate": 1.0, "total_steps": 100}
    schedule = registry.resolve({"schedule": config})["schedule"]
    assert list(islice(schedule, 2)) == pytest.approx([1.0, second])
