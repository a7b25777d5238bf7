"""The encoders in a pipeline: they learn, are kept, and start as their papers have them."""

import pytest
from thinc.api import Adam

from spacy_psa.architectures import encoders
from tests.helpers.layers import arrays, module_of
from tests.helpers.pipelines import (
    TEXTS,
    annotate,
    entities,
    make_examples,
    make_nlp,
    small_model,
    train,
)

SMALL = {"heads": 2, "head_width": 8, "layers": 1, "dropout": 0.0, "output_dropout": 0.0}
FACTORED = {
    "width": 16,
    "heads": 2,
    "head_width": 8,
    "layers": 1,
    "feedforward": 16,
    "max_length": 20,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "residual_dropout": 0.0,
}
PSA = {"hidden": 8, "lstm_input_dropout": 0.0, "lstm_output_dropout": 0.0, "attention_dropout": 0.0}
ENCODERS = {
    "Transformer": SMALL,
    "TENER": {**SMALL, "key_relative_bias": True},
    "PSATransformer": {**SMALL, "feedforward": 16, "input_dropout": 0.0},
    "IDCNN": {"kernels": 16, "dilations": [1, 2], "output_dropout": 0.0},
    "FactoredTransformer": {**FACTORED, "window": 3},
    "FactoredTransformer, plain": {**FACTORED, "factored": False},
    "FactoredTransformer, bfloat16": {**FACTORED, "precision": "bfloat16"},
    "PSABiLSTM, bfloat16": {**PSA, "precision": "bfloat16"},
}


def block(name, **options):
    name, _, _ = name.partition(",")
    return {"@architectures": f"spacy-psa.{name}.v1", **options}


@pytest.mark.parametrize("name", ENCODERS)
def test_a_pipeline_learns_sentences_and_keeps_them(name, monkeypatch):
    monkeypatch.setattr("spacy_psa.modules.products.ROWS", 4)  # these sentences are short
    model = small_model(encoder=block(name, **ENCODERS[name]))
    nlp = make_nlp(model)
    assert nlp.get_pipe("ner").model.get_ref("tok2vec").get_dim("nO") == 16
    examples = make_examples(nlp)[:3]
    losses = train(nlp, 60, Adam(0.005), examples)
    assert losses[-1] < 0.1 * losses[0]
    texts = TEXTS[:3]
    loaded = make_nlp(model).from_bytes(nlp.to_bytes())
    found = annotate(nlp, texts)
    assert found == annotate(loaded, texts)
    expected = [entities(example.reference) for example in examples]
    assert [[tuple(e) for e in ents] for ents in found["entities"]] == expected


def test_sentences_longer_than_the_positions_are_labelled():
    nlp = make_nlp(small_model(encoder=block("FactoredTransformer", **FACTORED)))
    train(nlp, 1)
    assert len(nlp("word " * 50)) == 50


def built(make, width=7, **settings):
    model = make(**settings).initialize(X=arrays([2], width))
    return model, module_of(model)


def test_the_bilstm_is_the_baseline_of_wei2020():
    model, module = built(encoders.bilstm)
    assert model.get_dim("nO") == 600 and len(module.layers) == 1
    assert (module.input_dropout.p, module.output_dropout.p) == (0.55, 0.55)


def test_the_cross_bilstm_is_that_of_its_paper():
    model, module = built(encoders.cross_bilstm)
    assert model.get_dim("nO") == 200
    assert [(layer.input_size, layer.hidden_size) for layer in module.layers] == [
        (7, 100),
        (200, 100),
    ]
    assert (module.input_dropout.p, module.output_dropout.p) == (0.35, 0.35)


def test_the_plain_stack_of_that_paper_is_built_with_separate():
    model, module = built(encoders.bilstm, hidden=100, layers=2, separate=True)
    assert [layer.input_size for layer in module.layers] == [7, 100]
    assert model.predict(arrays([3], 7))[0].shape == (3, 200)


def test_the_self_attentive_bilstm_is_that_of_its_paper():
    model, module = built(encoders.self_attentive_bilstm)
    assert model.get_dim("nO") == 400
    assert (module.heads, module.lstm.separate, len(module.lstm.layers)) == (5, True, 2)
    assert (module.lstm.input_dropout.p, module.lstm.output_dropout.p) == (0.35, 0.35)


def test_tener_is_that_of_its_script_for_conll():
    assert encoders.tener().get_dim("nO") == 14 * 128


def test_the_factored_transformer_is_that_of_its_paper():
    model, module = built(encoders.factored_transformer, 512)
    assert model.get_dim("nO") == 1024 and len(module.layers) == 8
    assert module.project is None and module.positions.shape == (302, 512)
