"""The tag head of `constituency_parser`: tags from the vectors that trees come from."""

import numpy
import pytest
import torch
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam

from spacy_psa.errors import InputError
from tests.helpers.parsers import (
    chart_model,
    make_listening_parser,
    make_parser,
    random_parser,
    train_parser,
    tree_examples,
)
from tests.helpers.pipelines import parameters
from tests.helpers.trees import BRACKETS, tree_doc

ENCODERS = ["BiLSTM", "FactoredTransformer"]


def model(encoder="BiLSTM"):
    return chart_model(encoder, tag_hidden=16)


def tags(doc):
    return [token.tag_ for token in doc]


@pytest.fixture(scope="module")
def trained():
    """A pipeline that knows the trees and tags of `BRACKETS`, serialised."""
    nlp = make_parser(model())
    train_parser(nlp, 60)
    return nlp.to_bytes()


@pytest.fixture
def tagging(trained):
    return make_parser(model()).from_bytes(trained)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_handful_of_trees_and_tags_is_learned_together(encoder):
    nlp = make_parser(model(encoder))
    history = train_parser(nlp, 80, 0.01 if encoder == "FactoredTransformer" else 0.02)
    assert history[-1] < 0.1 * history[0]
    scores = nlp.evaluate(tree_examples(nlp))
    assert scores["constituents_f"] == scores["constituents_tag_acc"] == 1.0
    joined = nlp(Doc(nlp.vocab, words=["Ada", "met", "Evans", "in", "Bath", "."]))
    assert " ".join(joined[:]._.parse_string.split()) == BRACKETS[0]


def test_sentences_of_a_doc_and_white_space_keep_their_places(tagging):
    gold = tree_doc(tagging.vocab, *BRACKETS[:2])
    words = [token.text for token in gold]
    starts = [token.is_sent_start for token in gold]
    doc = tagging(
        Doc(
            tagging.vocab,
            words=[words[0], "\n", *words[1:]],
            sent_starts=[starts[0], False, *starts[1:]],
        )
    )
    assert tags(doc) == [gold[0].tag_, "", *tags(gold)[1:]]


def test_tags_are_found_in_the_training_data_or_given(tagging):
    parser = tagging.get_pipe("parser")
    gold = {token.tag_ for eg in tree_examples(tagging) for token in eg.reference}
    assert parser.tags == tuple(sorted(gold))
    nlp = make_parser(model())
    nlp.get_pipe("parser").initialize(lambda: tree_examples(nlp), tags=[*sorted(gold), "NEW"])
    assert nlp.get_pipe("parser").tags == (*sorted(gold), "NEW")


def test_data_without_tags_is_an_error_that_says_what_to_do():
    nlp = make_parser(model())
    examples = tree_examples(nlp)
    for eg in examples:
        for token in eg.reference:
            token.tag_ = ""
    with pytest.raises(InputError, match=r"tag_hidden.*set it to null"):
        nlp.initialize(lambda: examples)


def test_a_tag_that_appears_only_after_initialize_is_an_error(tagging):
    with pytest.raises(InputError, match=r"'Leeds'.*the tag 'NEW'.*initialize with all tags"):
        tagging.update(tree_examples(tagging, ["(NP (NEW Leeds))"]), sgd=Adam(0.01))


def test_tokens_without_a_tag_are_not_learned_from(tagging):
    parser = tagging.get_pipe("parser")
    (eg,) = tree_examples(tagging, BRACKETS[:1])
    scores = parser.model.predict([eg.predicted])
    eg.reference[1].tag_ = ""
    _, gradients = parser.get_loss([eg], scores)
    moved = numpy.abs(gradients[1]).sum(1) > 0
    assert moved.tolist() == [True, False, True, True, True, True]


def test_gradients_are_those_of_the_loss():
    nlp = random_parser(model(), loss="log_likelihood")
    parser, examples = nlp.get_pipe("parser"), tree_examples(nlp)
    scores = parser.model.predict([eg.predicted for eg in examples])
    assert len(scores) == 2 * len(examples)
    loss, gradients = parser.get_loss(examples, scores)
    for array, place in ((1, (2, 1)), (len(examples) + 2, (0, 1))):
        moved = [each.copy() for each in scores]
        moved[array][place] += 0.01
        after, _ = parser.get_loss(examples, moved)
        assert after - loss == pytest.approx(0.01 * gradients[array][place], rel=0.05, abs=1e-5)
    assert [g.shape for g in gradients] == [s.shape for s in scores]


def test_the_loss_of_tags_is_weighed():
    found = []
    for weight in (0.0, 1.0, 3.0):
        nlp = random_parser(model(), tag_weight=weight)
        found.append(nlp.get_pipe("parser").update(tree_examples(nlp))["parser"])
    assert found[2] - found[0] == pytest.approx(3 * (found[1] - found[0]), rel=1e-4)
    assert found[1] > found[0]


def test_batches_of_few_spans_give_the_same_update():
    nlp = random_parser(model(), loss="log_likelihood")
    parser = nlp.get_pipe("parser")
    parser.update(tree_examples(nlp))  # gives words their rows
    found = []
    for spans in (100_000, 8):
        parser.batch_spans = spans
        for parameter in parameters(parser):
            parameter.grad = None
        loss = parser.update(tree_examples(nlp))["parser"]
        found.append([torch.tensor(loss), *(p.grad.clone() for p in parameters(parser))])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_a_listening_parser_tags_too():
    nlp = make_listening_parser(model())
    train_parser(nlp, 60)
    for eg in tree_examples(nlp):
        assert tags(nlp(eg.predicted)) == tags(eg.reference)


def test_tags_survive_disk_and_bytes(tagging, tmp_path):
    tagging.to_disk(tmp_path)
    again = make_parser(model()).from_disk(tmp_path)
    for nlp in (tagging, again):
        assert tags(nlp("Ada met Evans in Bath .")) == ["NNP", "VBD", "NNP", "IN", "NNP", "."]


def test_a_sentence_that_is_too_long_is_not_tagged(tagging):
    parser = tagging.get_pipe("parser")
    parser.max_length = 3
    with pytest.warns(UserWarning, match="max_length"):
        assert tags(parser(Doc(tagging.vocab, words=["Ada"] * 4))) == [""] * 4


def test_without_a_tag_head_tags_are_left_alone(parsing):
    doc = Doc(parsing.vocab, words=["Leeds"], tags=["X"])
    assert tags(parsing.get_pipe("parser")(doc)) == ["X"]
    assert parsing.get_pipe("parser").tags == ()


def test_documents_without_words_have_no_tags(tagging):
    docs = [Doc(tagging.vocab), Doc(tagging.vocab, words=["\n"]), Doc(tagging.vocab, words=["Yes"])]
    assert [tags(doc) for doc in tagging.pipe(docs)] == [[], [""], ["UH"]]


def test_a_width_below_one_is_refused():
    with pytest.raises(InputError, match="tag_hidden is 0"):
        make_parser(chart_model(tag_hidden=0))


def test_an_example_whose_tokens_differ_teaches_the_tags_that_it_can(tagging):
    """A part of a gold token has its tag; a token over several of them has none."""
    parser = tagging.get_pipe("parser")
    for words, spaces, learned in (
        (["Ada", "te", "a"], [True, False, True], [True, True, True]),
        (["Adatea"], [True], [False]),
    ):
        reference = tree_doc(tagging.vocab, "(NP (NNP Ada) (NN tea))")
        eg = Example(Doc(tagging.vocab, words=words, spaces=spaces), reference)
        scores = parser.model.predict([eg.predicted])
        _, gradients = parser.get_loss([eg], scores)
        assert (numpy.abs(gradients[1]).sum(1) > 0).tolist() == learned
