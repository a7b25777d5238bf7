"""Trainings that end before they are evaluated: said before they start."""

import random
import warnings

import pytest
from spacy.training import Corpus
from spacy.training.initialize import init_nlp

from spacy_psa.training.checks import check_dev_labels, no_evaluation
from spacy_psa.training.run import run
from tests.helpers.commands import command, succeed
from tests.helpers.trainings import make_config
from tests.training.test_checks import write


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A pipeline over four sentences, in batches of one."""
    path = tmp_path_factory.mktemp("corpus") / "train.spacy"
    write(path, "SEEN")
    config = make_config(path)
    config["training"]["batcher"] = {"@batchers": "spacy.batch_by_sequence.v1", "size": 1}
    return init_nlp(config)


def said(nlp, **training):
    usual = {"max_steps": 0, "max_epochs": 0}
    nlp.config["training"].update({**usual, **training})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_dev_labels()(nlp)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("training", "told"),
    [
        ({"max_epochs": 2, "eval_frequency": 8}, True),
        ({"max_epochs": 2, "eval_frequency": 7}, False),
        ({"max_epochs": 1, "eval_frequency": 4}, True),
        ({"max_steps": 7, "eval_frequency": 8}, True),
        ({"max_steps": 8, "eval_frequency": 8}, False),
        ({"max_steps": 9, "max_epochs": 1, "eval_frequency": 8}, True),
        ({"max_steps": 9, "max_epochs": 9, "eval_frequency": 8}, False),
        ({"eval_frequency": 10**9}, False),
        ({"max_epochs": -1, "max_steps": 20, "eval_frequency": 8}, False),
    ],
)
def test_a_training_without_evaluation_is_told_of_with_the_remedy(made, training, told):
    found = said(made, **training)
    assert len(found) == told
    if told:
        assert "almost untrained" in found[0] and "--training.eval_frequency" in found[0]


def test_the_remedy_works(made):
    (message,) = said(made, max_epochs=2, eval_frequency=1405)
    assert "after 8 update(s), and eval_frequency is 1,405" in message
    frequency = int(message.split("--training.eval_frequency ")[1].split()[0])
    assert said(made, max_epochs=2, eval_frequency=frequency) == []


def test_a_single_update_is_told_of(made):
    (message,) = said(made, max_epochs=1, eval_frequency=8) or [""]
    assert message
    made.config["training"]["batcher"]["size"] = 9
    try:
        (message,) = said(made, max_epochs=1, eval_frequency=8)
        assert "after 1 update(s)" in message and "more --training.max_epochs" in message
    finally:
        made.config["training"]["batcher"]["size"] = 1


def test_the_check_draws_no_random_numbers(made):
    random.seed(3)
    wanted = random.Random(3).random()
    augmenter = {"@augmenters": "spacy.lower_case.v1", "level": 0.5}
    made.config["corpora"]["train"]["augmenter"] = augmenter
    said(made, max_epochs=2, eval_frequency=8)
    assert random.random() == wanted


def test_the_command_says_it_once_before_the_first_step(tmp_path):
    write(tmp_path / "train.spacy", "SEEN")
    config = make_config(tmp_path / "train.spacy", eval_frequency=1405, max_steps=2)
    config["training"]["logger"]["output_file"] = None
    config.to_disk(tmp_path / "config.cfg")
    result = succeed(command("train")(tmp_path / "config.cfg", "--output", tmp_path / "out"))
    assert result.stderr.count("warning: the training ends after 3 update(s)") == 1


def test_training_data_is_read_for_the_labels_for_this_check_and_to_train(tmp_path, monkeypatch):
    read = []

    class Counted(Corpus):
        def __call__(self, nlp):
            read.append(self.path.stem)
            return super().__call__(nlp)

    monkeypatch.setattr("spacy.training.corpus.Corpus", Counted)
    config = make_config(tmp_path / "train.spacy", eval_frequency=8, max_epochs=1, max_steps=0)
    for name in ("train", "dev"):
        write(tmp_path / f"{name}.spacy", "SEEN")
        config["corpora"][name]["path"] = str(tmp_path / f"{name}.spacy")
    config["training"]["logger"]["output_file"] = None
    run(tmp_path / "config.cfg", config, tmp_path / "out", lambda warning: None)
    assert read.count("train") == 3


def test_processes_share_the_updates_of_an_epoch(made):
    made.config["training"].update(max_steps=0, max_epochs=2, eval_frequency=7)
    assert no_evaluation(made) is None
    assert "after 4 update(s)" in (no_evaluation(made, processes=2) or "")
