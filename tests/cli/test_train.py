"""`spacy-psa train`: a training from the command line, and one line for what is wrong."""

import itertools

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_psa.pipeline.chain.spans import SpanLabeler
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.pipelines import make_examples
from tests.helpers.trainings import digests, killed_at, make_config

train = command("train")


@pytest.fixture
def config(tmp_path):
    """A config in a file, whose training data is beside it."""
    docs = [eg.reference for eg in make_examples(spacy.blank("en"))]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    found = make_config(tmp_path / "train.spacy", max_steps=8, eval_frequency=4)
    found["training"]["logger"]["output_file"] = str(tmp_path / "log.jsonl")
    found.to_disk(tmp_path / "config.cfg")
    return tmp_path / "config.cfg"


def test_a_pipeline_is_trained_with_settings_of_the_command_line(config, tmp_path):
    succeed(train(config, "-o", tmp_path / "new" / "out", "--training.max_steps", 4))
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == [
        "checkpoints",
        "model-best",
        "model-last",
    ]
    nlp = spacy.load(tmp_path / "new" / "out" / "model-last")
    assert nlp.config["training"]["max_steps"] == 4


def test_a_killed_training_goes_on_and_a_finished_one_stays(config, tmp_path, monkeypatch):
    arguments = [config, "-o", tmp_path / "out", "--resume"]
    with killed_at(monkeypatch, 4):
        train(*arguments)
    result = train(*arguments)
    assert result.exit_code == 0 and "Resuming after step 4" in result.stdout
    before = digests(tmp_path / "out")
    again = train(*arguments)
    assert again.exit_code == 0 and "is finished" in again.stdout
    assert digests(tmp_path / "out") == before and (tmp_path / "log.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--components.ner.shceme", "BIO"], "shceme"),
        (["--componets.ner.scheme", "BIO"], "componets"),
        (["--components.ner.scheme", "BOI"], "'BOI' is not"),
        (["--components.ner.factory", "crf_nre"], "crf_nre"),
        (["--training.max_steps", "many"], "max_steps"),
        (["--training.dev_corpus", "corpora.none"], "corpora.none"),
        (["--corpora.dev.path", "none.spacy"], "none.spacy: there is no such file"),
        (["--corpora.train.path", "none.spacy"], "none.spacy: there is no such file"),
        (["--corpora.train.path", "null"], "Corpus path can't be None"),
        (["--initialize.vectors", "none"], "'none'"),
        (["--training.max_steps", "3", "more"], "more: is an unexpected argument"),
        (["more"], "more: is an unexpected argument"),
        (["--foo", "1"], "--foo: is not an option; overrides are --SECTION.NAME VALUE"),
        (["--code", "none.py"], "--code none.py: cannot be imported"),
    ],
)
def test_what_cannot_be_trained_is_one_error(config, tmp_path, options, reason):
    result = train(config, "-o", tmp_path / "out", *options)
    assert_one_error(result, reason)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[nlp\n", "is not a config"),
        ('[nlp]\nlang = "en"\n', "there is no section [training]"),
        ("[nlp]\nlang = ${paths.lang}\n", "is not a config"),
    ],
)
def test_a_file_that_is_no_training_config_is_one_error(tmp_path, text, reason):
    (tmp_path / "config.cfg").write_text(text)
    assert_one_error(train(tmp_path / "config.cfg", "-o", tmp_path / "out"), "config.cfg", reason)
    assert not (tmp_path / "out").exists()


def test_a_missing_config_is_one_error(tmp_path):
    result = train(tmp_path / "none.cfg", "-o", tmp_path / "out")
    assert_one_error(result, "none.cfg: there is no such config")


def test_an_output_that_is_a_file_is_one_error(config):
    assert_one_error(train(config, "-o", config), "config.cfg: is not a folder to write to")


@pytest.mark.parametrize(("option", "value"), [("--save-every", -1), ("--gpu-id", -2)])
def test_numbers_out_of_range_are_refused(config, tmp_path, option, value):
    result = train(config, "-o", tmp_path / "out", option, value)
    assert result.exit_code == 2 and option in result.stderr
    assert not (tmp_path / "out").exists()


def test_data_without_an_example_is_one_error(config, tmp_path):
    DocBin().to_disk(tmp_path / "train.spacy")
    assert_one_error(train(config, "-o", tmp_path / "out"), "there are no labels")


def test_a_bad_loss_is_one_error_or_is_left_out(config, tmp_path, monkeypatch):
    get_loss = SpanLabeler.get_loss
    calls = itertools.count()

    def bad(self, examples, scores):
        loss, gradients = get_loss(self, examples, scores)
        return (float("inf") if next(calls) in (5, 11) else loss), gradients

    monkeypatch.setattr(SpanLabeler, "get_loss", bad)
    result = train(config, "-o", tmp_path / "out")
    assert_one_error(result, "step 5: the loss of ner is inf", "--skip-bad-loss")
    assert (tmp_path / "out" / "model-best").is_dir()
    result = succeed(train(config, "-o", tmp_path / "out", "--skip-bad-loss"))
    assert "step 5: the loss of ner is inf" in result.stderr
    assert "1 step(s) were left out" in result.stderr
