"""Steps that a thread reads ahead are those that are read when their turn comes."""

import random
import threading

import pytest

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.prepared import Prepared
from spacy_psa.training.ahead import Ahead
from spacy_psa.training.checkpoint import Checkpoints
from spacy_psa.training.finite_losses import FiniteLosses
from tests.helpers.pipelines import make_examples, random_nlp
from tests.helpers.trainings import digests, killed_at, make_config, run


@pytest.fixture
def prepared(monkeypatch):
    """The threads in which examples were prepared."""
    threads = []
    init = Prepared.__init__

    def noted(self, *arguments):
        threads.append(threading.current_thread())
        init(self, *arguments)

    monkeypatch.setattr(Prepared, "__init__", noted)
    return threads


@pytest.mark.parametrize("parts", [1, 2])
def test_a_training_has_the_same_files(tmp_path, corpus, prepared, parts):
    config = make_config(corpus, accumulate_gradient=parts)  # its batcher draws at random
    alone = digests(run(tmp_path / "alone", config))  # on a CPU
    assert not prepared
    assert digests(run(tmp_path / "ahead", config, ahead=2)) == alone
    assert len(prepared) >= 31 * parts and threading.main_thread() not in prepared


@pytest.mark.parametrize("ahead", [(3, 0), (0, 3)])
def test_it_may_be_switched_on_and_off_when_a_training_is_resumed(
    tmp_path, monkeypatch, corpus, ahead
):
    config = make_config(corpus, "adam")
    with killed_at(monkeypatch, 5):
        run(tmp_path / "resumed", config, save_every=5, ahead=ahead[0])
    run(tmp_path / "resumed", config, save_every=5, resume=True, ahead=ahead[1])
    assert digests(tmp_path / "resumed") == digests(run(tmp_path / "whole", config))


def test_an_error_comes_with_its_step(tmp_path, monkeypatch, corpus):
    logs = []
    for ahead in (0, 3):
        read, calls = ChainLabeler._read_gold, []

        def fail(self, examples, read=read, calls=calls):
            calls.append(examples)
            if len(calls) == 12:
                raise InputError("the label 'X' is not known")
            return read(self, examples)

        monkeypatch.setattr(ChainLabeler, "_read_gold", fail)
        with pytest.raises(InputError, match="the label 'X' is not known"):
            run(tmp_path / str(ahead), make_config(corpus, eval_frequency=1), ahead=ahead)
        monkeypatch.setattr(ChainLabeler, "_read_gold", read)
        logs.append((tmp_path / str(ahead) / "log.jsonl").read_text())
    assert logs[0] == logs[1] and logs[0].count("\n") == 11


@pytest.mark.parametrize(
    ("place", "name", "error"),
    [(FiniteLosses, "update", KeyboardInterrupt), (Checkpoints, "save", OSError)],
)
def test_the_thread_ends_with_the_training(tmp_path, monkeypatch, corpus, place, name, error):
    def fail(*_, **settings):
        raise error

    monkeypatch.setattr(place, name, fail)
    with pytest.raises((KeyboardInterrupt, InputError)) as raised:
        run(tmp_path, make_config(corpus), ahead=2)
    assert raised and not [t for t in threading.enumerate() if t.name.startswith("ahead")]


def test_a_few_steps_are_read_ahead_and_the_thread_ends(corpus):
    nlp = random_nlp()
    steps = [[[example]] for example in make_examples(nlp)]
    pulled = []

    def cut():
        for step in steps:
            pulled.append(step)
            yield step

    before = threading.active_count()
    running = Ahead(nlp, 1, [], 2)(cut())
    assert next(running) is steps[0] and len(pulled) == 3
    assert next(running) is steps[1] and len(pulled) == 4
    assert threading.active_count() == before + 1
    running.close()  # as an exception in the loop does
    assert threading.active_count() == before
    assert list(Ahead(nlp, 1, [], 2)(iter(steps))) == steps


def test_draws_of_the_batcher_come_when_the_step_does():
    nlp = random_nlp()
    (example, *_) = make_examples(nlp)

    def cut():
        for _ in range(5):
            drawn.append(random.random())
            yield [[example]]

    results = []
    for pass_on in (iter, Ahead(nlp, 1, [], 2)):
        random.seed(1)
        drawn, states = [], []
        states = [random.getstate() for _ in pass_on(cut())]
        results.append((drawn, states))
    assert results[0] == results[1]
