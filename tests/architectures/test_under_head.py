"""`max_uncertainty`: a document memory that asks the head above it."""

import numpy
import pytest
import spacy
import torch
from spacy.util import registry

from spacy_psa.architectures.chart import chart_parser
from spacy_psa.architectures.crf import crf, softmax
from spacy_psa.architectures.documents import document_memory, sentence_context
from spacy_psa.architectures.sentencewise import sentence_scores
from spacy_psa.bridge.shim import shim_of
from spacy_psa.errors import InputError
from spacy_psa.sentences import SplitDocs, split_sentences
from tests.helpers.documents import LINES, make_tok2vec
from tests.helpers.embedders import LISTENER
from tests.helpers.pipelines import make_examples, make_nlp, small_encoder, small_model
from tests.helpers.words import docs_of, joined

VOCAB = spacy.blank("en").vocab
HEADS = {
    "label_pair": crf,
    "transition": lambda tok2vec: crf(tok2vec, potentials="transition"),
    "softmax": softmax,
}


def memory(max_uncertainty, below=None):
    return document_memory(
        below or make_tok2vec(), width=4, dropout=0.0, max_uncertainty=max_uncertainty
    )


def initialized(model, tags=3):
    model.set_dim("nO", tags)
    model.initialize(X=docs_of(VOCAB, *LINES))
    model.begin_update(docs_of(VOCAB, *LINES))  # it meets their words
    for node in model.walk():  # so that the head is not equally uncertain of all tokens
        for shim in node.shims:
            for weights in shim.module.parameters():
                torch.nn.init.normal_(weights, std=0.7)
    return model


def built(make, max_uncertainty, seed=0):
    torch.manual_seed(seed)
    return initialized(make(memory(max_uncertainty)))


def doc():
    return joined(docs_of(VOCAB, *LINES))


def pruned_by_hand(model, doc, most):
    """The scores of a model whose memory gets the occurrences that are certain enough."""
    below, head = model.get_ref("tok2vec"), model.get_ref("head")
    states = torch.from_numpy(numpy.concatenate(below.layers[0].predict(split_sentences([doc]))))
    uncertain = shim_of(head).module.uncertainty(states) > most
    words = [token.lower_ for token in doc]
    rows = [
        [
            j
            for j in sorted(range(len(words)), key=lambda j: (abs(j - i), j))
            if j != i and words[j] == words[i] and not uncertain[j]
        ]
        for i in range(len(words))
    ]
    longest = max(1, *map(len, rows))
    places = torch.tensor([row + [-1] * (longest - len(row)) for row in rows])
    vectors = shim_of(below).module(states, places).detach().numpy()
    ends = numpy.cumsum([len(sentence) for sentence in split_sentences([doc])])[:-1]
    return numpy.concatenate(head.predict(numpy.split(vectors, ends))), uncertain


@pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
def test_uncertain_occurrences_are_left_out_in_annotation_and_in_training(make):
    model, whole = built(make, 0.6), built(make, None)
    expected, uncertain = pruned_by_hand(model, doc(), 0.6)
    assert uncertain.any() and not uncertain.all()
    found = numpy.concatenate(model.predict([doc()]))
    numpy.testing.assert_allclose(found, expected, atol=1e-5)
    assert not numpy.allclose(found, numpy.concatenate(whole.predict([doc()])), atol=1e-3)
    trained, backprop = model.begin_update([doc()])
    numpy.testing.assert_allclose(numpy.concatenate(trained), expected, atol=1e-5)
    backprop(trained)
    used = model.get_ref("tok2vec").shims[0].module.value.weight
    assert used.grad is not None and used.grad.isfinite().all() and used.grad.any()
    split = SplitDocs([doc()])
    numbers = list(range(len(split.sizes)))
    by_parts = numpy.concatenate(sentence_scores(model, split)(numbers))
    numpy.testing.assert_allclose(by_parts, expected, atol=1e-5)


def test_a_bound_of_one_leaves_out_none():
    found, expected = (built(crf, most).predict([doc()]) for most in (1.0, None))
    for array, wanted in zip(found, expected, strict=True):
        numpy.testing.assert_array_equal(array, wanted)


def test_a_document_does_not_depend_on_those_beside_it():
    model = built(crf, 0.6)
    other = joined(docs_of(VOCAB, "Leeds , Ada .", "Ada saw Leeds"))
    together = model.predict([other, doc()])
    alone = [array for each in (other, doc()) for array in model.predict([each])]
    for array, wanted in zip(together, alone, strict=True):
        numpy.testing.assert_allclose(array, wanted, atol=1e-5)


def test_a_pipeline_is_the_same_from_disk(tmp_path):
    model = small_model("transition")
    model["tok2vec"] = {
        "@architectures": "spacy-psa.DocumentMemory.v1",
        "width": 4,
        "max_uncertainty": 0.6,
        "tok2vec": model["tok2vec"],
    }
    nlp = make_nlp(model)
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    found, expected = (
        numpy.concatenate(each.get_pipe("ner").model.predict([doc()])) for each in (loaded, nlp)
    )
    numpy.testing.assert_allclose(found, expected, atol=1e-6)
    assert loaded.get_pipe("ner").model.get_ref("tok2vec").attrs["asks_head"]


def encoded_above():
    """A memory in `embed`, below a second encoder."""
    config = {"@architectures": "spacy.Tok2Vec.v2", "encode": small_encoder("BiLSTM")}
    encoder = registry.resolve({"encode": config["encode"]})["encode"]
    tok2vec = registry.get("architectures", "spacy.Tok2Vec.v2")
    return tok2vec(embed=memory(0.5), encode=encoder)


@pytest.mark.parametrize(
    "make",
    [
        lambda: crf(encoded_above()),
        lambda: crf(sentence_context(memory(0.5), width=4)),
        lambda: chart_parser(memory(0.5), hidden=4),
        lambda: chart_parser(memory(0.5), hidden=4, tag_hidden=4),
    ],
    ids=["an encoder between", "sentence context between", "a parser", "a parser with tags"],
)
def test_a_head_that_cannot_tell_is_one_error(make):
    with pytest.raises(InputError, match=r"DocumentMemory\.v1: max_uncertainty asks the head"):
        make()


def test_without_a_head_above_it_is_one_error():
    model = memory(0.5)
    model.initialize(X=docs_of(VOCAB, *LINES))
    with pytest.raises(InputError, match=r"into the slot tok2vec of CRF\.v1 or Softmax\.v1"):
        model.predict([doc()])


def test_it_stands_around_a_listener():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": small_model()["tok2vec"]})
    settings = {"@architectures": "spacy-psa.DocumentMemory.v1", "max_uncertainty": 0.6}
    chain = {
        "@architectures": "spacy-psa.CRF.v1",
        "tok2vec": {**settings, "tok2vec": LISTENER, "width": 4},
    }
    nlp.add_pipe("crf_ner", name="ner", config={"model": chain})
    nlp.initialize(lambda: make_examples(nlp))
    losses = nlp.update(make_examples(nlp))
    assert numpy.isfinite(losses["ner"])
    assert nlp(joined(docs_of(nlp.vocab, *LINES))).has_annotation("ENT_IOB")


@pytest.mark.parametrize("bound", [-0.1, 1.5])
def test_a_bound_is_a_share(bound):
    with pytest.raises(InputError, match=f"DocumentMemory.v1: max_uncertainty is {bound}"):
        memory(bound)
