"""The Transformer encoders and the IDCNN in a pipeline, and what their builders refuse."""

import pytest
from spacy.util import registry
from spacy_psa.architectures.encode import idcnn_encoder
from spacy_psa.architectures.encode_attention import (
    psa_transformer_encoder,
    tener_encoder,
    transformer_encoder,
)
from thinc.api import Adam

from spacy_psa.errors import InputError

SMALL = {"heads": 2, "head_width": 8, "layers": 1, "dropout": 0.0, "output_dropout": 0.0}
ENCODERS = {
    "Transformer": SMALL,
    "TENER": {**SMALL, "key_relative_bias": True},
    "PSATransformer": {**SMALL, "feedforward": 16, "input_dropout": 0.0},
    "IDCNN": {"kernels": 16, "dilations": [1, 2], "output_dropout": 0.0},
}


@pytest.mark.parametrize("name", ENCODERS)
def test_a_pipeline_learns_sentences_and_keeps_them(tools, name):
    encoder = {"@architectures": f"spacy-psa.{name}.v1", **ENCODERS[name]}
    model = tools.small_model(encoder=encoder)
    nlp = tools.make_nlp(model)
    assert nlp.get_pipe("ner").model.get_ref("tok2vec").get_dim("nO") == 16
    examples = tools.make_examples(nlp)[:3]
    losses = tools.train(nlp, 60, Adam(0.005), examples)
    assert losses[-1] < 0.1 * losses[0]
    texts = tools.texts[:3]
    loaded = tools.make_nlp(model).from_bytes(nlp.to_bytes())
    found, again = tools.annotate(nlp, texts), tools.annotate(loaded, texts)
    assert found == again
    expected = [tools.entities(example.reference) for example in examples]
    assert [[tuple(e) for e in ents] for ents in found["entities"]] == expected


@pytest.mark.parametrize("name", ENCODERS)
def test_a_config_finds_the_builder_and_its_width(name):
    config = {"encoder": {"@architectures": f"spacy-psa.{name}.v1", **ENCODERS[name]}}
    assert registry.resolve(config)["encoder"].get_dim("nO") == 16


def test_the_defaults_of_tener_are_those_of_its_script_for_conll():
    assert tener_encoder().get_dim("nO") == 14 * 128


@pytest.mark.parametrize("build", [transformer_encoder, tener_encoder, psa_transformer_encoder])
@pytest.mark.parametrize("size", ["heads", "head_width", "layers", "feedforward"])
def test_sizes_below_one_are_refused_at_once(build, size):
    with pytest.raises(InputError, match=rf"\.v1: {size} is 0: take 1 or more"):
        build(**{size: 0})


@pytest.mark.parametrize(
    ("option", "value"), [("position", "psi"), ("version", "v2"), ("window", 0)]
)
def test_unknown_options_of_the_psa_transformer_are_refused_at_once(option, value):
    with pytest.raises(InputError, match=rf"PSATransformer\.v1: {option} is {value!r}"):
        psa_transformer_encoder(**{option: value})


@pytest.mark.parametrize(
    "options", [{"kernels": 0}, {"size": 4}, {"dilations": [0]}, {"iterations": -1}], ids=str
)
def test_sizes_of_the_idcnn_are_checked_at_once(options):
    with pytest.raises(InputError, match="IDCNN"):
        idcnn_encoder(**options)
