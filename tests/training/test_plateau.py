"""The learning rate of Kitaev2018: a linear warm-up, then halved where scores stop rising."""

import gc
import io
import warnings
from itertools import count, islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import registry

from spacy_psa.errors import InputError
from spacy_psa.training.schedules import score_listener, warmup_halving
from tests.helpers.pipelines import make_examples, make_nlp


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
    from spacy_psa.training import schedules

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
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(InputError, match=r"warmup_halving\.v1"):
        warmup_halving(1.0, *settings)


def test_spacys_training_halves_the_rate_of_its_optimizer(tmp_path, monkeypatch):
    """A whole `spacy train` of a small tagger whose scores never rise."""
    import spacy
    from spacy.tokens import DocBin
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train

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
    from spacy_psa.training.optimizers import AdaptiveOptimizer

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
