"""The learning rates of the papers, update by update."""

import gc
import io
import math
import warnings
from itertools import count, islice, pairwise

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import registry

from spacy_psa.errors import InputError
from spacy_psa.training import schedules
from spacy_psa.training.optimizers import AdaptiveOptimizer, sgd
from spacy_psa.training.schedules import (
    cosine,
    inverse_decay,
    score_listener,
    triangular,
    warmup_halving,
)
from tests.helpers.pipelines import make_examples, make_nlp

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


# A linear warm-up, then halved where scores stop rising (Kitaev2018)


def rates(schedule, scores, every):
    """Those of the updates of a training with an evaluation after each `every` updates, and
    after the first one, as spaCy's loop takes them."""
    used = [next(schedule)]
    scores = iter(scores)
    for step in count():
        following = next(schedule)
        if step % every == 0:
            score = next(scores, None)
            if score is None:
                return used
            schedule.report(score)
        used.append(following)


def closed_form(scores, every, max_rate, warmup, patience, factor):
    """The s-th update's rate from all the scores of the training, read again each time."""
    used = []
    for s in range(1, every * (len(scores) - 1) + 2 + (every - 1) + 1):
        # The score after update t + 1, t = 0, every, …, is known to update t + 3.
        known = [(t + 2, score) for t, score in zip(count(0, every), scores) if t + 3 <= s]
        best, waited, halvings = float("-inf"), 0, 0
        for asked, score in known:
            if score > best:
                best, waited = score, 0
            elif asked > warmup:
                waited += 1
                if waited % patience == 0:
                    halvings += 1
        used.append(max_rate * factor**halvings * min(1.0, s / warmup if warmup else 1.0))
    return used


def test_the_first_epoch_of_the_paper_rises_to_the_base_rate():
    found = list(islice(warmup_halving(8e-4), 161))
    assert found[0] == pytest.approx(8e-4 / 160)
    assert found[79] == pytest.approx(4e-4)
    assert found[159] == found[160] == 8e-4
    assert all(a < b for a, b in pairwise(found[:160]))


def test_the_rate_is_halved_after_five_epochs_of_four_evaluations_without_a_better_score():
    schedule = warmup_halving(8e-4)
    scores = [0.0, 10.0, 20.0, 30.0, 40.0, 90.0] + 20 * [89.0] + 19 * [90.0] + [90.1] + 20 * [1.0]
    found = rates(schedule, scores, 40)
    changes = [(s, b / a) for s, (a, b) in enumerate(pairwise(found), 2) if a != b and s > 160]
    assert changes == [(25 * 40 + 3, 0.5), (65 * 40 + 3, 0.5)]


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=40),
    st.integers(1, 5),
    st.integers(0, 8),
    st.integers(1, 4),
)
def test_rates_are_the_closed_form(scores, every, warmup, patience):
    found = rates(warmup_halving(1.0, warmup, patience, 0.5), scores, every)
    expected = closed_form(scores, every, 1.0, warmup, patience, 0.5)
    assert found == pytest.approx(expected[: len(found)])
    assert len(found) <= len(expected)


def test_scores_of_the_warm_up_are_never_too_low():
    schedule = warmup_halving(1.0, 100, 2)
    assert max(rates(schedule, [0.5] * 9, 5)) < 0.5
    assert schedule.halvings == 0


def test_the_listening_logger_hands_scores_on_and_logs_as_ever():
    schedule, logged = warmup_halving(1.0, 0, 1), []
    next(schedule)

    def logger(nlp, stdout, stderr):
        return logged.append, lambda: logged.append("end")

    log_step, finalize = score_listener(logger)(None, io.StringIO(), io.StringIO())
    for info in (None, {"score": 0.5}, {"score": None}, {"score": 0.4}):
        log_step(info)
    finalize()
    assert (schedule.best, schedule.halvings, schedule.rate) == (0.5, 1, 0.5)
    assert logged == [None, {"score": 0.5}, {"score": None}, {"score": 0.4}, "end"]


def test_schedules_that_are_gone_hear_nothing_and_are_not_kept():
    gc.collect()
    before = len(schedules._listening)
    schedule = warmup_halving(1.0)
    assert len(schedules._listening) == before + 1
    del schedule
    gc.collect()
    assert len(schedules._listening) == before


def test_a_schedule_that_hears_no_scores_says_so_once():
    schedule = warmup_halving(1.0, 3, 2)
    with pytest.warns(UserWarning, match=r"score_listener\.v1"):
        list(islice(schedule, 7))
    heard = warmup_halving(1.0, 3, 2)
    heard.report(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(islice(schedule, 20))
        list(islice(heard, 20))


@pytest.mark.parametrize("settings", [(-1, 20, 0.5), (160, 0, 0.5), (160, 20, 0.0), (160, 20, 1.0)])
def test_a_warm_up_and_halving_that_is_not_possible_is_refused(settings):
    with pytest.raises(InputError, match=r"warmup_halving\.v1"):
        warmup_halving(1.0, *settings)


def test_spacys_training_halves_the_rate_of_its_optimizer(tmp_path, monkeypatch):
    """A whole `spacy train` of a small tagger whose scores never rise."""
    nlp = make_nlp()
    DocBin(docs=[eg.reference for eg in make_examples(nlp)]).to_disk(tmp_path / "data.spacy")
    corpus = {"@readers": "spacy.Corpus.v1", "path": str(tmp_path / "data.spacy")}
    optimizer = {
        "@optimizers": "spacy-psa.Adam.v1",
        "learn_rate": {
            "@schedules": "spacy-psa.warmup_halving.v1",
            "max_rate": 1e-12,
            "warmup_steps": 2,
            "patience": 2,
        },
    }
    training = {
        "train_corpus": "corpora.train",
        "dev_corpus": "corpora.dev",
        "eval_frequency": 2,
        "max_steps": 12,
        "optimizer": optimizer,
        "logger": {
            "@loggers": "spacy-psa.score_listener.v1",
            "logger": {"@loggers": "spacy.ConsoleLogger.v3", "progress_bar": None},
        },
    }
    config = nlp.config.merge({"corpora": {"train": corpus, "dev": corpus}, "training": training})
    found = []
    step = AdaptiveOptimizer.step_schedules
    monkeypatch.setattr(
        AdaptiveOptimizer,
        "step_schedules",
        lambda self: (found.append(self.learn_rate), step(self)),
    )
    train(init_nlp(spacy.util.load_config_from_str(config.to_str())), stdout=io.StringIO())
    # Scored after updates 1, 3, 5, …; those after the third and fifth are the first two
    # that could have been better.
    expected = [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25]
    assert [rate / 1e-12 for rate in found] == pytest.approx(expected[: len(found)])
    assert len(found) >= 12


def test_a_config_finds_schedule_and_logger():
    config = {"s": {"@schedules": "spacy-psa.warmup_halving.v1", "max_rate": 1.0}}
    assert next(registry.resolve(config)["s"]) == 1 / 160
    logger = {
        "@loggers": "spacy-psa.score_listener.v1",
        "logger": {"@loggers": "spacy.ConsoleLogger.v3"},
    }
    assert callable(registry.resolve({"logger": logger})["logger"])
