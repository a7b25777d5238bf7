"""What zeroing parts of a self-attentive BiLSTM does to a tagger (Li2019 section 5.4.1)."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam

from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses.ablation import blocks, recalls, setups, unknown_labels, zeroed
from spacy_psa.scoring.token_recall import token_recall, type_class
from tests.helpers.analyses import tag_path
from tests.helpers.pipelines import TEXTS, make_examples, make_nlp, small_model, train

HEADS = 3
ENCODER = {
    "@architectures": "spacy-psa.SelfAttentiveBiLSTM.v1",
    "hidden": 6,
    "heads": HEADS,
    "input_dropout": 0.0,
    "output_dropout": 0.0,
}
NAMES = ("H", "C1", "C2", "C3")


@pytest.fixture(scope="module", params=["softmax", "label_pair"])
def nlp(request):
    nlp = make_nlp(small_model(request.param, ENCODER))
    train(nlp, 15, Adam(0.02))
    return nlp


@pytest.fixture
def ner(nlp):
    return nlp.get_pipe("ner")


@pytest.fixture
def docs(nlp):
    return [nlp.make_doc(text) for text in TEXTS]


def scores(ner, docs):
    return numpy.concatenate(ner.model.predict(docs))


def test_blocks_are_the_states_and_each_head(ner):
    assert blocks(ner) == NAMES


@pytest.mark.parametrize("silent", ["H", "C2 C3", "H C1", ""])
def test_scores_lack_the_terms_of_what_is_zeroed(ner, docs, silent):
    silent = silent.split()
    tok2vec, head = ner.model.get_ref("tok2vec"), ner.model.get_ref("head")
    vectors = tok2vec.predict(docs)
    widths = {"H": slice(0, 12)} | {f"C{i + 1}": slice(12 + 4 * i, 16 + 4 * i) for i in range(3)}
    for name in silent:
        for array in vectors:
            array[:, widths[name]] = 0
    expected = numpy.concatenate(head.predict(vectors))
    with zeroed(ner, silent):
        found = scores(ner, docs)
    numpy.testing.assert_allclose(found, expected, atol=1e-5)
    assert (abs(found - scores(ner, docs)).max() > 1e-3) == bool(silent)


def test_all_comes_back_after_the_context(ner, docs):
    before = scores(ner, docs)
    with pytest.raises(RuntimeError), zeroed(ner, {"H"}):
        with zeroed(ner, {"C1"}):
            pass
        inside = scores(ner, docs)
        raise RuntimeError
    assert not numpy.allclose(inside, before)
    numpy.testing.assert_array_equal(scores(ner, docs), before)


def test_zeroing_leaves_the_saved_model_as_it_is(ner):
    before = ner.to_bytes()
    with zeroed(ner, NAMES):
        assert ner.to_bytes() == before


def test_an_unknown_block_is_refused(ner):
    with pytest.raises(InputError, match=r"no block C4, D: choose from H, C1, C2, C3"):
        zeroed(ner, {"D", "C4"}).__enter__()


def test_an_encoder_without_these_blocks_is_refused(trained):
    with pytest.raises(InputError, match="SelfAttentiveBiLSTM"):
        blocks(trained.get_pipe("ner"))


def test_the_setups_are_the_columns_of_the_paper():
    assert setups(NAMES) == {
        "HC": set(),
        "H": {"C1", "C2", "C3"},
        "C": {"H"},
        "C1": {"H", "C2", "C3"},
        "C2": {"H", "C1", "C3"},
        "C3": {"H", "C1", "C2"},
    }


def test_recalls_are_those_of_each_setup(nlp, ner):
    examples = make_examples(nlp)
    table = recalls(ner, examples, type_class)
    assert list(table) == ["HC", "H", "C", "C1", "C2", "C3"]
    gold = [
        [ner.tags[tag] for tag in ner._gold_tags(eg, [(0, len(eg.predicted))])[0].tolist()]
        for eg in examples
    ]
    tokens = sum(map(len, gold))
    for name, silent in setups(NAMES).items():
        assert sum(recall.total for recall in table[name].values()) == tokens
        with zeroed(ner, silent):
            if "emission" in {node.name for node in ner.model.walk()}:
                found = [ner.model.predict([eg.predicted])[0].argmax(1) for eg in examples]
            else:
                docs = [eg.predicted for eg in examples]
                both = zip(ner.predict(docs), docs, strict=True)
                found = [numpy.array(tag_path(p.spans, len(doc), ner.tags)) for p, doc in both]
        tags = [[ner.tags[tag] for tag in sentence.tolist()] for sentence in found]
        assert table[name] == token_recall(gold, tags, type_class)
    assert table["HC"]["NONE"].rate > 0.5
    assert len({tuple(recall.items()) for recall in table.values()}) > 1


def test_a_tag_that_a_token_is_known_not_to_have_does_not_count():
    nlp = spacy.blank("en")
    tagger = nlp.add_pipe("crf_tagger", config={"model": small_model("softmax", ENCODER)})
    words = ["Dogs", "bark"]
    both = [Doc(nlp.vocab, words=words, tags=tags) for tags in (["N", "V"], ["N", "!N"])]
    made = [Example(Doc(nlp.vocab, words=words), doc) for doc in both]
    nlp.initialize(lambda: made)
    assert unknown_labels(tagger, made[1]) == []
    table = recalls(tagger, made, str)["HC"]
    assert {name: recall.total for name, recall in table.items()} == {"N": 2, "V": 1}
    made[1].reference[1].tag_ = "X"
    assert unknown_labels(tagger, Example(made[1].predicted, made[1].reference)) == ["X"]


def test_tokens_without_annotation_and_empty_docs_do_not_count(nlp, ner):
    words = ["Ada", "left"]
    partly = Doc(nlp.vocab, words=words)
    partly.set_ents([Span(partly, 0, 1, "PER")], missing=[partly[1:2]])
    empty = Doc(nlp.vocab, words=[])
    examples = [Example(Doc(nlp.vocab, words=words), partly), Example(empty, empty)]
    assert [(name, r.total) for name, r in recalls(ner, examples)["HC"].items()] == [("S", 1)]
