"""The configs of X (self-attentive, cross, its baseline): that they hold the paper's settings."""

from pathlib import Path

import numpy
import pytest
from spacy.training import Example
from spacy.util import load_config, load_model_from_config

from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM
from spacy_psa.training.optimizers import Nadam

NER = Path(__file__).parent.parent / "configs" / "ner"
NAMES = ["bilstm_x", "cross", "self_attentive"]


def read(name):
    return load_config(NER / f"{name}.cfg").interpolate()


@pytest.mark.parametrize("name", NAMES)
def test_the_training_is_that_of_the_paper(name):
    config = read(name)
    training, ner = config["training"], config["components"]["ner"]
    assert training["optimizer"]["@optimizers"] == "spacy-psa.Nadam.v1"
    assert training["optimizer"]["learn_rate"] == 1e-3
    assert training["batcher"]["size"] == 32
    assert training["eval_frequency"] == -(-14_041 // 32)
    assert training["patience"] == 20 * training["eval_frequency"]
    assert (ner["scheme"], ner["max_grad_norm"]) == ("BIOES", 0.0)
    assert ner["model"]["@architectures"] == "spacy-psa.Softmax.v1"
    encode = ner["model"]["tok2vec"]["encode"]
    assert (encode["input_dropout"], encode["output_dropout"]) == (0.35, 0.35)


def test_the_systems_differ_in_their_encoder_alone():
    configs = [read(name) for name in NAMES]
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
    nlp = load_model_from_config(read(name), auto_fill=True)
    nlp.vocab.set_vector("lives", numpy.ones(300, dtype="float32"))
    doc = nlp.make_doc("Ada Lovelace lives in London")
    gold = {"entities": [(0, 12, "PERSON"), (22, 28, "GPE")]}
    example = Example.from_dict(doc, gold)
    optimizer = nlp.initialize(lambda: [example])
    assert isinstance(optimizer, Nadam)
    model = nlp.get_pipe("ner").model
    tok2vec = model.get_ref("tok2vec")
    assert tok2vec.get_ref("embed").get_dim("nO") == 300 + 4 + 60
    encoder = tok2vec.get_ref("encode").shims[0].module
    assert isinstance(encoder, kind)
    stack = encoder if kind is BiLSTM else encoder.lstm
    assert [layer.input_size for layer in stack.layers] == [364, second]
    assert model.get_ref("head").shims[0].module.emission.weight.shape == (4 * 2 + 1, features)
    losses = [nlp.update([example], sgd=optimizer)["ner"] for _ in range(12)]
    assert min(losses[-3:]) < losses[0]
