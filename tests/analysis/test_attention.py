"""The attention weights and gates of a trained component."""

import numpy
import pytest
import spacy
from spacy.training import Example

from spacy_psa.analysis.attention import inspect
from spacy_psa.errors import InputError

ENCODER = {"@architectures": "spacy-psa.PSABiLSTM.v1", "hidden": 6}


def make_ner(encoder):
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-psa.CRF.v1",
        "tok2vec": {
            "@architectures": "spacy.Tok2Vec.v2",
            "embed": {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8, "rows": 50},
            "encode": encoder,
        },
    }
    nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    doc = nlp.make_doc("Ann left Bath")
    example = Example.from_dict(doc, {"entities": [(0, 3, "PER"), (9, 13, "LOC")]})
    nlp.initialize(lambda: [example])
    return nlp


def test_gives_attention_and_gates_of_both_layers_for_each_sentence():
    nlp = make_ner(ENCODER)
    docs = [nlp.make_doc("Ann left Bath today"), nlp.make_doc(""), nlp.make_doc("Hello")]
    first, second = inspect(nlp.get_pipe("ner"), docs)
    assert [layer.attention.shape for layer in first.layers] == [(4, 4), (4, 4)]
    assert [layer.gate.shape for layer in first.layers] == [(4, 8), (4, 12)]
    for layer in first.layers:
        numpy.testing.assert_allclose(layer.attention.sum(1), 1, rtol=1e-5)
        assert (numpy.diag(layer.attention) == 0).all()
        assert ((layer.gate > 0) & (layer.gate < 1)).all()
    assert second.sentence.text == "Hello"
    assert (second.layers[0].attention == 0).all()


def test_attention_stays_within_sentences():
    nlp = make_ner(ENCODER)
    doc = nlp.make_doc("Ann left Bath")
    doc[2].is_sent_start = True
    doc[1].is_sent_start = False
    assert [len(view.sentence) for view in inspect(nlp.get_pipe("ner"), [doc])] == [2, 1]


def test_an_encoder_over_a_listener_gets_the_vectors_of_the_whole_doc():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": {"width": 16, "embed_size": 50}})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16}
    model = {
        "@architectures": "spacy-psa.CRF.v1",
        "tok2vec": {"@architectures": "spacy.Tok2Vec.v2", "embed": listener, "encode": ENCODER},
    }
    ner = nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    ner.add_label("PER")
    nlp.initialize()
    doc = nlp("Ann left Bath")
    for i, token in enumerate(doc):
        token.is_sent_start = i != 1
    first, second = inspect(ner, [doc])
    assert (len(first.sentence), len(second.sentence)) == (2, 1)
    (wanted,) = inspect(ner, [doc[:2].as_doc()])  # with the vectors of its tokens
    for layer, other in zip(first.layers, wanted.layers, strict=True):
        numpy.testing.assert_allclose(layer.attention, other.attention, rtol=1e-5)


def test_an_encoder_inside_a_document_memory_is_found():
    nlp = make_ner(ENCODER)
    inner = nlp.config["components"]["ner"]["model"]["tok2vec"]
    memory = {"@architectures": "spacy-psa.DocumentMemory.v1", "tok2vec": inner, "width": 4}
    context = {"@architectures": "spacy-psa.SentenceContext.v1", "tok2vec": memory, "width": 4}
    for tok2vec in (memory, context):
        pipe = spacy.blank("en").add_pipe(
            "crf_ner", config={"model": {"@architectures": "spacy-psa.CRF.v1", "tok2vec": tok2vec}}
        )
        pipe.add_label("PER")
        doc = nlp.make_doc("Ann left Bath")
        pipe.initialize(lambda doc=doc: [Example(doc, doc)])
        (view,) = inspect(pipe, [doc])
        assert [layer.attention.shape for layer in view.layers] == [(3, 3), (3, 3)]
        assert all(layer.gate is not None for layer in view.layers)


def test_an_ensemble_is_refused_since_it_has_several_encoders():
    model = make_ner(ENCODER).config["components"]["ner"]["model"]
    nlp = spacy.blank("en")
    both = {"@architectures": "spacy-psa.Ensemble.v1", "*": {"one": model, "other": model}}
    pipe = nlp.add_pipe("crf_ner", config={"model": both})
    with pytest.raises(InputError, match="ensemble and has several encoders: use one of the"):
        inspect(pipe, [])


def test_an_encoder_without_attention_is_refused():
    nlp = make_ner({"@architectures": "spacy-psa.BiLSTM.v1", "hidden": 6})
    with pytest.raises(InputError, match="PSABiLSTM"):
        inspect(nlp.get_pipe("ner"), [nlp.make_doc("Ann left")])


@pytest.mark.parametrize("name", ["TENER", "Transformer", "PSATransformer"])
def test_gives_the_weights_of_each_layer_and_head_of_a_transformer(name):
    encoder = {"@architectures": f"spacy-psa.{name}.v1", "heads": 2, "head_width": 4, "layers": 3}
    nlp = make_ner(encoder)
    (view,) = inspect(nlp.get_pipe("ner"), [nlp.make_doc("Ann left Bath")])
    assert [layer.attention.shape for layer in view.layers] == [(2, 3, 3)] * 3
    for layer in view.layers:
        numpy.testing.assert_allclose(layer.attention.sum(-1), 1, rtol=1e-5)
        assert layer.gate is None


def test_gives_the_weights_of_each_head_of_a_self_attentive_bilstm():
    encoder = "spacy-psa.SelfAttentiveBiLSTM.v1"
    nlp = make_ner({"@architectures": encoder, "hidden": 6, "heads": 3})
    docs = [nlp.make_doc("Ann left Bath today"), nlp.make_doc("Hello")]
    first, second = inspect(nlp.get_pipe("ner"), docs)
    (layer,) = first.layers
    assert layer.attention.shape == (3, 4, 4) and layer.gate is None
    numpy.testing.assert_allclose(layer.attention.sum(2), 1, rtol=1e-5)
    assert (layer.attention > 0).all()
    assert (second.layers[0].attention == 1).all()
