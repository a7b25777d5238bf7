"""FactoredTransformer.v1 in a pipeline, and what its builder refuses."""

import pytest
from spacy.util import registry
from spacy_psa.architectures.encode_factored import factored_transformer_encoder
from thinc.api import Adam

from spacy_psa.errors import InputError

SMALL = {
    "@architectures": "spacy-psa.FactoredTransformer.v1",
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


@pytest.mark.parametrize(
    "options", [{"window": 3}, {"factored": False}, {"precision": "bfloat16"}], ids=str
)
def test_a_pipeline_learns_sentences_and_keeps_them(tools, options):
    model = tools.small_model(encoder={**SMALL, **options})
    nlp = tools.make_nlp(model)
    examples = tools.make_examples(nlp)[:3]
    losses = tools.train(nlp, 60, Adam(0.005), examples)
    assert losses[-1] < 0.1 * losses[0]
    texts = tools.texts[:3]
    loaded = tools.make_nlp(model).from_bytes(nlp.to_bytes())
    assert tools.annotate(nlp, texts) == tools.annotate(loaded, texts)
    found = [[tuple(e) for e in ents] for ents in tools.annotate(nlp, texts)["entities"]]
    assert found == [tools.entities(example.reference) for example in examples]


def test_sentences_longer_than_the_positions_are_labelled(tools):
    nlp = tools.make_nlp(tools.small_model(encoder=SMALL))
    tools.train(nlp, 1)
    assert len(nlp("word " * 50)) == 50


def test_the_defaults_are_the_papers():
    model = factored_transformer_encoder()
    model.initialize(X=[model.ops.alloc2f(2, 512)])
    module = model.shims[0].module
    assert model.get_dim("nO") == 1024 and len(module.layers) == 8
    assert module.project is None and module.positions.shape == (302, 512)


@pytest.mark.parametrize("head", ["label_pair", "softmax"])
def test_boundary_rows_are_refused_where_every_row_must_be_a_token(tools, head):
    model = tools.small_model(head, encoder={**SMALL, "boundaries": True})
    with pytest.raises(InputError, match=r"boundaries = true is for ChartParser\.v1"):
        registry.resolve({"model": model})


@pytest.mark.parametrize(
    "size",
    ["width", "heads", "head_width", "layers", "feedforward", "max_length", "window"],
)
def test_sizes_below_one_are_refused_at_once(size):
    with pytest.raises(InputError, match=rf"FactoredTransformer\.v1: {size} is 0: take 1"):
        factored_transformer_encoder(**{size: 0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 511}, "even numbers"),
        ({"position_only": 8}, "position_only needs"),
        ({"factored": False, "disable_content": [0]}, "need factored = true"),
        ({"disable_position": [8]}, "there is no layer 8"),
        ({"precision": "half"}, "precision is 'half'.*bfloat16"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused_at_once(options, message):
    with pytest.raises(InputError, match=message):
        factored_transformer_encoder(**options)
