"""`spacy-psa merge-config`: settings over a config, and the steps of a corpus."""

from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
import srsly
from thinc.api import Config

from spacy_psa.corpora.layouts import LAYOUTS
from tests.helpers.commands import assert_one_error, command
from tests.helpers.paths import CONFIGS, ROOT

run = command("merge-config")
TASKS = [(corpus, task) for corpus, layout in LAYOUTS.items() for task in layout.tasks]

TRAINING = """[training]
eval_frequency = 879
max_epochs = 100
patience = 8790

[training.batcher]
size = {size}

[training.optimizer]

[training.optimizer.learn_rate]
steps_per_epoch = 879
total_steps = 87900
"""
SENTENCES = "[corpus]\nsentences = 161\n"


@pytest.fixture
def merge(tmp_path: Path) -> Callable[..., Config]:
    """Merges a base and settings, texts or files of configs/. A failure is one error."""

    def merged(base: str, part: str, *values: str, error: str = "") -> Config:
        files = []
        for name, text in (("base", base), ("part", part)):
            files.append(CONFIGS / text if text.endswith(".cfg") else tmp_path / f"{name}.cfg")
            if not text.endswith(".cfg"):
                files[-1].write_text(text)
        out = tmp_path / "new" / "out.cfg"
        result = run(*files, out, *values)
        assert out.exists() != bool(error)
        if error:
            assert_one_error(result, error)
            return Config()
        assert result.exit_code == 0, result.stderr
        config = Config().from_disk(out, interpolate=False)
        assert "corpus" not in config
        return config

    return merged


BASE = (
    '[paths]\ntrain = null\nvectors = "x"\n\n[training]\ntrain = ${paths.train}\nmax_epochs = 9\n'
)


def test_a_merged_config_has_the_settings_and_its_variables(merge):
    merged = merge(BASE, "[paths]\nvectors = null\n\n[training]\nmax_epochs = 2\n")
    assert merged["paths"] == {"train": None, "vectors": None}
    assert merged["training"] == {"train": "${paths.train}", "max_epochs": 2}


def test_settings_in_a_section_that_the_base_lacks_are_an_error(merge):
    merge(BASE, "[training]\n\n[training.optimiser]\nlr = 1\n", error="[training.optimiser]")


@pytest.mark.parametrize(("corpus", "task"), TASKS)
def test_the_settings_of_each_corpus_fit_each_config(merge, corpus, task):
    for base in sorted((CONFIGS / task).glob("*.cfg")):
        assert merge(f"{task}/{base.name}", f"corpora/{corpus}.cfg")["training"]


def test_epochs_of_the_base_become_epochs_of_the_corpus(merge):
    part = f"{SENTENCES}\n[training]\nmax_epochs = 20\n"
    training = merge(TRAINING.format(size=16), part)["training"]
    assert training["eval_frequency"] == 11  # 161 / 16, rounded up
    assert training["patience"] == 10 * 11
    assert training["optimizer"]["learn_rate"] == {"steps_per_epoch": 11, "total_steps": 20 * 11}


def test_a_rate_without_schedule_stays_and_so_do_steps_of_batches_by_words(merge):
    constant = TRAINING.format(size=16).partition("[training.optimizer]")[0]
    constant += "[training.optimizer]\nlearn_rate = 0.001\n"
    assert merge(constant, SENTENCES)["training"]["patience"] == 110
    words = TRAINING.format(size='{"@schedules":"compounding.v1"}')
    assert merge(words, SENTENCES)["training"]["eval_frequency"] == 879


def test_batches_by_words_count_the_words_of_the_corpus(merge):
    base = """
[training]
max_epochs = 0
max_steps = 1000
eval_frequency = 100
patience = 300

[training.batcher]
@batchers = "spacy.batch_by_words.v1"
size = 50

[training.optimizer]
@optimizers = "spacy-psa.AdamW.v1"

[training.optimizer.learn_rate]
@schedules = "warmup_linear.v1"
initial_rate = 0.001
warmup_steps = 30
total_steps = 1000
"""
    training = merge(base, f"{SENTENCES}words = 1980\n")["training"]
    assert training["eval_frequency"] == 40  # 1980 / 50, rounded up
    assert (training["max_steps"], training["patience"]) == (10 * 40, 3 * 40)
    assert training["optimizer"]["learn_rate"]["total_steps"] == 10 * 40


@pytest.mark.parametrize(
    ("batches", "unit", "missing"),
    [("words", "sentences", "words"), ("sequence", "words", "sentences")],
)
def test_a_corpus_must_have_the_unit_of_the_batches(merge, batches, unit, missing):
    batcher = f'[training.batcher]\n@batchers = "spacy.batch_by_{batches}.v1"'
    base = TRAINING.format(size=16).replace("[training.batcher]", batcher)
    error = f"[training.batcher] counts in {missing}: add {missing!r}"
    merge(base, f"[corpus]\n{unit} = 161\n", error=error)


def test_settings_of_the_command_line_come_last_and_the_schedule_follows_them(merge):
    part = f"{SENTENCES}[training]\nmax_epochs = 20\n"
    values = ("training.max_epochs=3", "training.patience=7")
    training = merge(TRAINING.format(size=16), part, *values)["training"]
    assert (training["max_epochs"], training["patience"]) == (3, 7)
    assert training["optimizer"]["learn_rate"]["total_steps"] == 3 * 11


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("foo", "foo: has no '='; write a setting and its value"),
        ("training.max_epochs", "training.max_epochs: has no '='"),
        ("training.epochs=3", "has no setting 'training.epochs'"),
        ("training.batcher=3", "training.batcher is a section"),
    ],
)
def test_a_wrong_value_is_one_error_and_nothing_is_written(merge, value, reason):
    merge(TRAINING.format(size=16), SENTENCES, value, error=reason)


def test_a_missing_config_is_one_error(tmp_path):
    assert_one_error(run("none.cfg", "none.cfg", tmp_path / "out.cfg"), "no such config")


@pytest.mark.parametrize("sentences", ["0", '"many"', "2.5"])
def test_a_corpus_without_a_number_of_sentences_is_an_error(merge, sentences):
    part = f"[corpus]\nsentences = {sentences}\n"
    merge(TRAINING.format(size=16), part, error="[corpus]: sentences is")


def test_labels_of_a_corpus_are_read_from_the_file_in_its_settings(merge, monkeypatch):
    """Sections 19 to 21 of the Wall Street Journal have a tag that 0 to 18 lack."""
    monkeypatch.chdir(ROOT)
    merged = merge("tagger/psa.cfg", "corpora/wsj.cfg")
    labels = spacy.registry.resolve(merged["initialize"]["components"]["tagger"])["labels"]
    assert len(labels) == len({*labels}) == 48 and {"XX", "$", "NN", "PRP$"} <= {*labels}


@pytest.mark.parametrize("base", ["ner/psa", "parser/small"])
def test_the_log_is_written_to_a_chosen_file(merge, base):
    """Also if the logger is inside another one that listens for scores."""
    merged = merge(f"{base}.cfg", "corpora/sample.cfg", "--log", "a/log.jsonl")
    logger = merged["training"]["logger"]
    assert logger.get("logger", logger)["output_file"] == "a/log.jsonl"
    assert ("output_file" in logger) != ("logger" in logger)


def test_a_section_is_merged_into_the_existing_one(merge):
    section = 'training.optimizer={"momentum":0}'
    made = merge("ner/psa.cfg", "corpora/sample.cfg", section)["training"]["optimizer"]
    before = Config().from_disk(CONFIGS / "ner/psa.cfg")["training"]["optimizer"]
    assert before["momentum"] == 0.9 and made["momentum"] == 0
    assert made["@optimizers"] == before["@optimizers"] and made.keys() == before.keys()


def test_a_section_with_another_function_replaces_the_existing_one(merge):
    rate = {"@schedules": "constant.v1", "rate": 0.002}
    optimizer = {"@optimizers": "spacy-psa.Adam.v1", "learn_rate": rate}
    section = f"training.optimizer={srsly.json_dumps(optimizer)}"
    made = merge("ner/psa.cfg", "corpora/sample.cfg", section)["training"]["optimizer"]
    assert made == optimizer
    assert next(iter(spacy.registry.resolve({"it": made})["it"].schedules["learn_rate"])) == 0.002


@pytest.mark.parametrize(
    ("corpus", "configs"),
    [
        ("conll2003", "ner/psa ner/tener ner/cross ner/transformer_crf ner/tok2vec_crf ner/best"),
        ("resume", "ner/tener_zh"),
        ("conll2000", "chunker/psa chunker/best"),
        ("wsj", "tagger/psa tagger/best"),
    ],
)
def test_settings_of_the_papers_corpus_change_no_step(merge, corpus, configs):
    for name in configs.split():
        merged = merge(f"{name}.cfg", f"corpora/{corpus}.cfg")
        base = Config().from_disk(CONFIGS / f"{name}.cfg", interpolate=False)
        assert merged["training"] == base["training"]


# Epochs

CORPUS = "[corpus]\nsentences = 300\nwords = 4782\n"


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
def test_epochs_that_are_asked_for_are_the_steps_of_the_training(merge, base, epoch, limit, epochs):
    asked = f"[training]\nmax_epochs = {epochs}\n"
    training = merge(f"{base}.cfg", CORPUS + asked).interpolate()["training"]
    rate = training["optimizer"]["learn_rate"]
    assert (training["max_epochs"], training["eval_frequency"]) == (epochs, epoch)
    assert training["max_steps"] == limit * epochs * epoch
    assert rate["total_steps"] == epochs * epoch
    assert rate.get("warmup_steps", 0) <= epoch
    by_value = merge(f"{base}.cfg", CORPUS, f"training.max_epochs={epochs}")
    assert training == by_value.interpolate()["training"]


def test_the_rate_rises_in_as_many_epochs_as_that_of_the_config(merge):
    training = merge("ner/best.cfg", CORPUS)["training"]
    assert training["max_steps"] == training["optimizer"]["learn_rate"]["total_steps"] == 14 * 20
    assert training["optimizer"]["learn_rate"]["warmup_steps"] == 300 * 20 // 815


def test_steps_that_are_given_with_the_corpus_stay(merge):
    steps = "[training]\nmax_epochs = 30\nmax_steps = 500\n[training.optimizer]\n"
    steps += "[training.optimizer.learn_rate]\ntotal_steps = 500\nwarmup_steps = 50\n"
    training = merge("ner/best.cfg", CORPUS + steps)["training"]
    rate = training["optimizer"]["learn_rate"]
    assert (training["max_steps"], rate["total_steps"], rate["warmup_steps"]) == (500, 500, 50)
