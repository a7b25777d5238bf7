"""`spacy-psa merge-config`: values of the command line, and the steps of a corpus."""

import pytest
from thinc.api import Config

from tests.helpers.commands import assert_one_error, command
from tests.helpers.paths import CONFIGS

run = command("merge-config")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("foo", "foo: has no '='; write a setting and its value"),
        ("training.max_epochs", "training.max_epochs: has no '='"),
        ("training.none=3", "has no setting 'training.none'"),
        ("training.optimizer=3", "training.optimizer is a section"),
    ],
)
def test_a_wrong_value_is_one_error_and_nothing_is_written(tmp_path, value, reason):
    (tmp_path / "settings.cfg").write_text("")
    base, out = CONFIGS / "ner" / "psa.cfg", tmp_path / "out.cfg"
    assert_one_error(run(base, tmp_path / "settings.cfg", out, value), reason)
    assert not out.exists()


CORPUS = "[corpus]\nsentences = 300\nwords = 4782\n"


def merged(folder, base, settings, *values):
    """The [training] section of a config with settings, its variables filled in."""
    (folder / "settings.cfg").write_text(settings)
    result = run(CONFIGS / f"{base}.cfg", folder / "settings.cfg", folder / "out.cfg", *values)
    assert result.exit_code == 0, result.output
    return Config().from_disk(folder / "out.cfg")["training"]


@pytest.mark.parametrize("epochs", [2, 30])
@pytest.mark.parametrize(
    ("base", "epoch", "limit"),
    [
        ("ner/best", 20, True),  # batches of 250 words
        ("ner/small", 20, True),
        ("tagger/best", 20, True),
        ("parser/best", 6, True),  # batches of 50 sentences; a variable
        ("ner/tok2vec_crf", 10, False),  # batches of 32 sentences; max_epochs alone ends it
    ],
)
def test_epochs_that_are_asked_for_are_the_steps_of_the_training(
    tmp_path, base, epoch, limit, epochs
):
    asked = f"[training]\nmax_epochs = {epochs}\n"
    training = merged(tmp_path, base, CORPUS + asked)
    rate = training["optimizer"]["learn_rate"]
    assert (training["max_epochs"], training["eval_frequency"]) == (epochs, epoch)
    assert training["max_steps"] == limit * epochs * epoch
    assert rate["total_steps"] == epochs * epoch
    assert rate.get("warmup_steps", 0) <= epoch
    assert training == merged(tmp_path, base, CORPUS, f"training.max_epochs={epochs}")


def test_the_rate_rises_in_as_many_epochs_as_that_of_the_config(tmp_path):
    training = merged(tmp_path, "ner/best", CORPUS)
    assert training["max_steps"] == training["optimizer"]["learn_rate"]["total_steps"] == 14 * 20
    assert training["optimizer"]["learn_rate"]["warmup_steps"] == 300 * 20 // 815


def test_steps_that_are_given_with_the_corpus_stay(tmp_path):
    steps = "[training]\nmax_epochs = 30\nmax_steps = 500\n[training.optimizer]\n"
    steps += "[training.optimizer.learn_rate]\ntotal_steps = 500\nwarmup_steps = 50\n"
    training = merged(tmp_path, "ner/best", CORPUS + steps)
    rate = training["optimizer"]["learn_rate"]
    assert (training["max_steps"], rate["total_steps"], rate["warmup_steps"]) == (500, 500, 50)
