"""The configs of the TENER paper for Chinese; tests/configs/test_grid.py has its Table 5."""

import math
import re
from itertools import islice

import pytest
from spacy.training import Example
from spacy.util import fix_random_seed, load_config, load_model_from_config
from thinc.api import Adam
from typer.testing import CliRunner

from spacy_psa.app import app
from spacy_psa.modules.tener import TENER
from spacy_psa.modules.transformer import Transformer
from tests.helpers.configs import read, training_of
from tests.helpers.layers import modules_of
from tests.helpers.paths import CONFIGS

CHINESE = {"tener_zh": TENER, "transformer_zh": Transformer}


@pytest.mark.parametrize("name", CHINESE)
def test_chinese_is_trained_as_english_but_for_the_authors_choices(name):
    own, english = read(f"ner/{name}"), read(f"ner/{name.removesuffix('_zh')}")
    training = training_of(own)
    epoch = math.ceil(3_821 / 16)
    assert training["eval_frequency"] == epoch and training["max_epochs"] == 50
    rates = list(islice(training["optimizer"].schedules["learn_rate"], 50 * epoch))
    assert max(rates) == pytest.approx(7e-4, rel=0.01)
    assert rates.index(max(rates)) == pytest.approx(0.01 * 50 * epoch, abs=2)
    assert rates[-1] == 0
    for config in (own, english):
        for key in ("heads", "head_width", "layers", "input_dropout"):
            config["components"]["ner"]["model"]["tok2vec"]["encode"].pop(key)
        config["components"]["ner"]["model"]["tok2vec"].pop("embed")
    assert own["components"] == english["components"]


def test_the_two_systems_for_chinese_differ_in_their_encoder_alone():
    tener, transformer = (read(f"ner/{name}") for name in CHINESE)
    for config in (tener, transformer):
        del config["components"]["ner"]["model"]["tok2vec"]["encode"]
    assert tener == transformer


@pytest.mark.parametrize("name", CHINESE)
def test_characters_and_bigrams_are_built_and_trained(name):
    nlp = load_model_from_config(read(f"ner/{name}").interpolate(), auto_fill=True)
    doc = nlp.make_doc("王小明住在北京")
    assert [token.text for token in doc] == list("王小明住在北京")
    gold = Example.from_dict(doc, {"entities": [(0, 3, "NAME"), (5, 7, "LOC")]})
    fix_random_seed(0)
    optimizer = nlp.initialize(lambda: [gold], sgd=Adam(0.002))
    model = nlp.get_pipe("ner").model
    assert model.get_ref("tok2vec").get_ref("embed").get_dim("nO") == 50 + 50
    (encoder,) = modules_of(model, CHINESE[name])
    assert encoder.output_width == 4 * 64 and len(encoder.layers) == 2
    losses = [nlp.update([gold], sgd=optimizer)["ner"] for _ in range(20)]
    assert min(losses[-3:]) < losses[0]
    assert {ent.label_ for ent in nlp("王小明住在北京").ents} <= {"NAME", "LOC"}


def test_the_authors_choice_for_weibo_is_reached_by_the_values_that_the_file_names(tmp_path):
    base = CONFIGS / "ner" / "tener_zh.cfg"
    (values,) = re.findall(r'--vars.set "(.+)"', base.read_text())
    weibo, out = CONFIGS / "corpora" / "weibo.cfg", tmp_path / "out.cfg"
    words = ["merge-config", base, weibo, out, *values.split()]
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0, result.stderr
    config = load_config(out).interpolate()
    encode = config["components"]["ner"]["model"]["tok2vec"]["encode"]
    assert (encode["heads"], encode["head_width"], encode["layers"]) == (4, 32, 1)
    rate = config["training"]["optimizer"]["learn_rate"]
    assert rate["max_rate"] == 1e-3
    assert rate["total_steps"] == 100 * math.ceil(1_350 / 16)
    assert config["training"]["max_epochs"] == 100
