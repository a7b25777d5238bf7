import numpy
import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_psa.errors import InputError

TOK2VEC = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 8,
    "depth": 1,
    "embed_size": 50,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": False,
}
OTHERS = {
    "spaCy's parser": {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "ner",
        "extra_state_tokens": False,
        "hidden_width": 8,
        "maxout_pieces": 2,
        "use_upper": True,
        "nO": None,
        "tok2vec": TOK2VEC,
    },
    "spaCy's tagger": {"@architectures": "spacy.Tagger.v2", "nO": None, "tok2vec": TOK2VEC},
    "the chart parser": {
        "@architectures": "spacy-psa.ChartParser.v1",
        "hidden": 10,
        "tok2vec": TOK2VEC,
    },
    "a bare tok2vec": TOK2VEC,
}


@pytest.mark.parametrize("factory", ["crf_ner", "crf_tagger", "crf_chunker"])
@pytest.mark.parametrize("other", OTHERS)
def test_a_model_that_does_not_score_tags_is_named(factory, other):
    nlp = spacy.blank("en")
    nlp.add_pipe(factory, config={"model": OTHERS[other]})
    doc = nlp.make_doc("Ada left")
    gold = doc.copy()
    gold.set_ents([Span(gold, 0, 1, "PER")])
    gold.spans["chunks"] = [Span(gold, 0, 1, "NP")]
    gold[0].tag_, gold[1].tag_ = "NN", "VB"
    with pytest.raises(InputError, match=r"spacy-psa.CRF.v1 or spacy-psa.Softmax.v1") as error:
        nlp.initialize(lambda: [Example(doc, gold)])
    assert f"[components.{factory}.model]" in str(error.value) and "\n" not in str(error.value)


def test_a_thousand_labels_name_the_potentials_that_fit():
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": TOK2VEC}
    ner = nlp.add_pipe("crf_ner", config={"model": model})
    for number in range(1000):
        ner.add_label(f"L{number}")
    with pytest.raises(InputError, match=r'1,000 labels .* potentials = "transition"'):
        nlp.initialize()


@pytest.mark.parametrize("potentials", ["label_pair", "transition"])
def test_two_hundred_labels_train(potentials):
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-psa.CRF.v1", "potentials": potentials, "tok2vec": TOK2VEC}
    ner = nlp.add_pipe("crf_ner", config={"model": model})
    for number in range(200):
        ner.add_label(f"L{number:03}")
    doc = nlp.make_doc("Ada left")
    gold = doc.copy()
    gold.set_ents([Span(gold, 0, 1, "L007")])
    optimizer = nlp.initialize(lambda: [Example(doc, gold)])
    losses = nlp.update([Example(doc, gold)], sgd=optimizer)
    assert numpy.isfinite(losses["ner" if "ner" in losses else "crf_ner"])
