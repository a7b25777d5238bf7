"""The configs of the TENER paper: Table 5 from one config by overrides, and Chinese."""

import math
import re
from itertools import islice

import pytest
import spacy
from spacy.cli._util import parse_config_overrides
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import fix_random_seed, load_config, load_model_from_config
from thinc.api import Adam

from spacy_psa.modules.tener import TENER
from spacy_psa.modules.transformer import Transformer
from tests.helpers.commands import command, succeed
from tests.helpers.configs import read, training_of
from tests.helpers.layers import modules_of, torch_modules
from tests.helpers.modules import parameter_count
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import MARKED, make_examples

GRID = CONFIGS / "ner" / "grid.cfg"
# Each character encoder, and its parameters without the embeddings, as the paper counts them.
CHAR = {
    "none": None,
    "bilstm": ("CharBiLSTM", 35_830),
    "cnn": ("CharCNN", 3_660),
    "transformer": ("CharTransformer", 8_460),
    "adatrans": ("CharAdaTrans", 6_600),
}
WORD = {"bilstm": "BiLSTM", "idcnn": "IDCNN", "adatrans": "TENER"}
TINY = {
    "words.width": 8,
    "words.rows": 50,
    "word.bilstm.hidden": 4,
    "word.idcnn.kernels": 8,
    "word.adatrans.heads": 2,
    "word.adatrans.head_width": 4,
}


def cell(char, word):
    """Overrides as a user types them, and small sizes."""
    line = ["--grid.char", f"${{char.{char}}}", f"--grid.word=${{word.{word}}}"]
    return {**parse_config_overrides(line, env_var=None), **TINY}


def modules(nlp):
    """The torch modules of its `ner`, by the names of their classes."""
    return {type(module).__name__: module for module in torch_modules(nlp.get_pipe("ner").model)}


@pytest.mark.parametrize("word", WORD)
@pytest.mark.parametrize("char", CHAR)
def test_every_cell_is_built_and_updated(char, word):
    nlp = load_model_from_config(load_config(GRID, overrides=cell(char, word)), auto_fill=True)
    fix_random_seed(0)
    examples = make_examples(nlp, MARKED[:2])
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(0.01))
    found = modules(nlp)
    of_characters = {
        name: parameter_count(module) - module.embed.weight.numel()
        for name, module in found.items()
        if name.startswith("Char")
    }
    assert of_characters == dict([CHAR[char]] if CHAR[char] else [])
    assert WORD[word] in found
    before = [p.detach().clone() for module in found.values() for p in module.parameters()]
    losses = nlp.update(examples, sgd=optimizer)
    after = [p for module in found.values() for p in module.parameters()]
    assert 0 < losses["ner"] < float("inf")
    # All but a bias of keys, which softmax does not see, and rows that no word has.
    assert sum(not a.equal(b) for a, b in zip(after, before, strict=True)) >= len(before) - 2
    assert nlp("Ada met Babbage").has_annotation("ENT_IOB")


def test_a_cell_is_trained_saved_and_loaded_from_the_command_line(tmp_path):
    blank = spacy.blank("en")
    docs = [example.reference for example in make_examples(blank)]
    DocBin(docs=docs).to_disk(tmp_path / "all.spacy")
    limits = {"training.max_steps": 2, "training.eval_frequency": 1}
    paths = {f"paths.{part}": str(tmp_path / "all.spacy") for part in ("train", "dev")}
    train(GRID, tmp_path, overrides={**cell("cnn", "idcnn"), **limits, **paths})
    nlp = spacy.load(tmp_path / "model-last")
    assert {"CharCNN", "IDCNN"} <= modules(nlp).keys()
    assert nlp.config.interpolate()["grid"]["char"]["*"]["characters"]["width"] == 30
    assert nlp("Ada met Babbage").has_annotation("ENT_IOB")


def test_rates_follow_the_override():
    overrides = parse_config_overrides(["--grid.rate", "0.01"], env_var=None)
    config = load_config(GRID, overrides=overrides).interpolate()
    assert config["training"]["optimizer"]["learn_rate"]["max_rate"] == 0.01


# English as in train_tener_en.py of the authors at commit c84d7a9

ENGLISH = ("tener", "transformer")


def test_the_two_systems_for_english_differ_in_their_encoder_alone():
    tener, transformer = (read(f"ner/{name}") for name in ENGLISH)
    for config in (tener, transformer):
        del config["components"]["ner"]["model"]["tok2vec"]["encode"]
    assert tener == transformer


@pytest.mark.parametrize("name", ENGLISH)
def test_english_is_trained_as_the_authors_train_it(name):
    config = read(f"ner/{name}")
    training = training_of(config)
    steps = math.ceil(14_041 / 16)
    batches = list(training["batcher"]([[0]] * 14_041))
    assert len(batches) == steps == training["eval_frequency"]
    optimizer = training["optimizer"]
    rates = list(islice(optimizer.schedules["learn_rate"], 100 * steps))
    assert max(rates) == pytest.approx(9e-4)
    assert rates.index(max(rates)) == pytest.approx(steps, abs=2)  # 1 of 100 passes
    nlp = load_model_from_config(config.interpolate(), auto_fill=True)
    nlp.initialize(lambda: make_examples(nlp, MARKED[:2]))
    model = nlp.get_pipe("ner").model.get_ref("tok2vec")
    drops, _, words = list(model.get_ref("embed").walk())[:3]
    assert (drops.name, drops.attrs["rate"]) == ("word_dropout", 0.02)
    assert words.attrs["dropout"] == 0.5 and words.attrs["normalize"] and words.attrs["by_form"]
    found = modules(nlp)
    letters, encoder = found["CharCNN"], found[{"tener": "TENER"}.get(name, "Transformer")]
    assert (letters.dropout.p, letters.output_dropout.p) == (0.3, 0.3)
    assert (encoder.input_dropout.p, encoder.output_dropout.p) == (0.0, 0.4)


# Chinese

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
    succeed(command("merge-config")(base, weibo, out, *values.split()))
    config = load_config(out).interpolate()
    encode = config["components"]["ner"]["model"]["tok2vec"]["encode"]
    assert (encode["heads"], encode["head_width"], encode["layers"]) == (4, 32, 1)
    rate = config["training"]["optimizer"]["learn_rate"]
    assert rate["max_rate"] == 1e-3
    assert rate["total_steps"] == 100 * math.ceil(1_350 / 16)
    assert config["training"]["max_epochs"] == 100
