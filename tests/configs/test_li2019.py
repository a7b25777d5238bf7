"""The configs of Li2019: a self-attentive BiLSTM, a crossed one, and their baseline."""

import math

import numpy
import pytest
from spacy.training import Example
from spacy.util import load_model_from_config

from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM
from spacy_psa.training.optimizers import AdaptiveOptimizer
from tests.helpers.configs import read
from tests.helpers.layers import module_of

NAMES = ["bilstm_x", "cross", "self_attentive"]


@pytest.mark.parametrize("name", NAMES)
def test_dev_is_evaluated_after_each_epoch(name):
    training = read(f"ner/{name}").interpolate()["training"]
    assert training["eval_frequency"] == math.ceil(14_041 / training["batcher"]["size"])
    assert training["patience"] % training["eval_frequency"] == 0


def test_the_systems_differ_in_their_encoder_alone():
    configs = [read(f"ner/{name}") for name in NAMES]
    for config in configs:
        del config["components"]["ner"]["model"]["tok2vec"]["encode"]
    assert configs[0] == configs[1] == configs[2]


@pytest.mark.parametrize(
    ("name", "kind", "second", "features"),
    [
        ("bilstm_x", BiLSTM, 100, 200),
        ("cross", BiLSTM, 200, 200),
        ("self_attentive", SelfAttentiveBiLSTM, 100, 400),
    ],
)
def test_the_sizes_of_the_paper_are_built_and_trained(name, kind, second, features):
    nlp = load_model_from_config(read(f"ner/{name}").interpolate(), auto_fill=True)
    nlp.vocab.set_vector("lives", numpy.ones(300, dtype="float32"))
    doc = nlp.make_doc("Ada Lovelace lives in London")
    gold = {"entities": [(0, 12, "PERSON"), (22, 28, "GPE")]}
    example = Example.from_dict(doc, gold)
    optimizer = nlp.initialize(lambda: [example])
    assert isinstance(optimizer, AdaptiveOptimizer)
    model = nlp.get_pipe("ner").model
    tok2vec = model.get_ref("tok2vec")
    assert tok2vec.get_ref("embed").get_dim("nO") == 300 + 4 + 60
    encoder = module_of(tok2vec.get_ref("encode"))
    assert isinstance(encoder, kind)
    stack = encoder if kind is BiLSTM else encoder.lstm
    assert [layer.input_size for layer in stack.layers] == [364, second]
    assert module_of(model.get_ref("head")).emission.weight.shape == (4 * 2 + 1, features)
    losses = [nlp.update([example], sgd=optimizer)["ner"] for _ in range(12)]
    assert min(losses[-3:]) < losses[0]
