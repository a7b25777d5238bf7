"""Configs that are laid over others, and single settings."""

import pytest
from spacy.util import dot_to_object
from thinc.api import Config

from spacy_psa.errors import InputError
from spacy_psa.training.layers import layered, with_settings
from tests.helpers.paths import CONFIGS

PSA = CONFIGS / "ner" / "psa.cfg"
RATE = {"@schedules": "warmup_linear.v1", "initial_rate": 0.1, "total_steps": 5}
ADAM = {"@optimizers": "spacy-psa.AdamW.v1", "learn_rate": RATE}


def test_a_later_setting_may_be_a_part_of_an_earlier_one():
    values = {"training.optimizer": ADAM, "training.optimizer.learn_rate.initial_rate": 0.5}
    values |= {"paths.train": "1.spacy", "training.optimizer.learn_rate": {"total_steps": 7}}
    config = layered(PSA, [CONFIGS / "corpora" / "conll2000.cfg"], values)
    rate = config["training"]["optimizer"]["learn_rate"]
    assert rate == {**RATE, "initial_rate": 0.5, "total_steps": 7}
    assert config["paths"]["train"] == "1.spacy"


def test_a_later_section_may_replace_that_of_an_earlier_setting():
    encode = "components.ner.model.tok2vec.encode"
    values = {f"{encode}.window": 5, encode: {"@architectures": "spacy-psa.BiLSTM.v1"}}
    config = layered(PSA, [CONFIGS / "corpora" / "conll2003.cfg"], values)
    assert dot_to_object(config, encode) == {"@architectures": "spacy-psa.BiLSTM.v1"}


def test_a_setting_of_a_section_that_was_replaced_is_known():
    values = {"training.optimizer": {**ADAM, "eps": 1e-7}, "training.optimizer.eps": "1e-6"}
    assert layered(PSA, [], values)["training"]["optimizer"]["eps"] == 1e-6
    with pytest.raises(InputError, match=r"no setting 'training\.optimizer\.m"):
        layered(PSA, [], {"training.optimizer": ADAM, "training.optimizer.momentum": 0.5})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("components.ner.label_smoothing", 0.25),
        ("components.ner.model.tok2vec.encode.width", 200),
        ("training.optimizer.clip_value", 5.0),
    ],
)
def test_a_setting_that_the_config_leaves_to_its_default_can_be_given(key, value):
    config = layered(PSA, [], {key: value})
    assert dot_to_object(config, key) == value


@pytest.mark.parametrize(
    "key", ["components.ner.smooth", "components.ner.model.tok2vec.encode.heads", "training.x.y"]
)
def test_a_setting_that_nothing_takes_is_an_error(key):
    with pytest.raises(InputError, match=f"has no setting '{key}'"):
        layered(PSA, [], {key: 1})


def test_the_config_itself_is_not_changed():
    config = Config({"a": {"b": [1]}})
    assert with_settings(config, {"a.b": "[2]"}, PSA) == {"a": {"b": [2]}}
    assert config == {"a": {"b": [1]}}
