"""A trained parser that gets labels it did not have."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from thinc.api import Softmax_v2

from spacy_psa.errors import InputError
from tests.helpers.parsers import chart_model, make_parser, train_parser, tree_examples
from tests.helpers.trees import BRACKETS

WORDS = ["Ada", "met", "Evans", "in", "Bath", "."]
RELABELLED = BRACKETS[0].replace("(PP ", "(PLACE ")


@pytest.mark.parametrize("label", ["", "(X", "S  VP", " S", "a\tb"])
def test_what_no_tree_can_hold_is_no_label(label):
    parser = make_parser().get_pipe("parser")
    with pytest.raises(InputError, match="is not a label"):
        parser.add_label(label)
    assert parser.add_label("S VP") == 1


def tree(nlp):
    return " ".join(nlp(Doc(nlp.vocab, words=WORDS))[:]._.parse_string.split())


@pytest.mark.parametrize("tag_hidden", [None, 16])
def test_a_trained_parser_learns_a_new_label_and_keeps_the_others(tag_hidden, tmp_path):
    nlp = make_parser(chart_model(tag_hidden=tag_hidden), loss="log_likelihood")
    train_parser(nlp, 60)
    parser = nlp.get_pipe("parser")
    docs = [nlp.make_doc(" ".join(WORDS))]
    before, known = parser.model.predict(docs), parser.labels
    parsed = tree(nlp)
    assert parser.add_label("PLACE") == 1 and parser.add_label("PLACE") == 0
    assert parser.labels == (*known, "PLACE")
    spans, *tags = parser.model.predict(docs)
    numpy.testing.assert_allclose(spans[:, :-1], before[0], atol=1e-6)
    assert (spans[:, -1] < 0).all()  # the score of no constituent is 0
    assert [array.tolist() for array in tags] == [array.tolist() for array in before[1:]]
    assert tree(nlp) == parsed and "PP" in parsed
    examples = tree_examples(nlp, [RELABELLED])
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.02
    for _ in range(25):
        nlp.update(examples, sgd=optimizer)
    learned = tree(nlp)
    assert "(PLACE " in learned and "(NP " in learned
    nlp.to_disk(tmp_path / "model")
    assert tree(spacy.load(tmp_path / "model")) == learned


def test_a_model_of_another_make_says_that_it_takes_no_new_label():
    nlp = make_parser()
    train_parser(nlp)
    parser = nlp.get_pipe("parser")
    known, parser.model = parser.labels, Softmax_v2(nO=len(parser.labels), nI=4)
    with pytest.raises(ValueError, match=r"only the heads of spacy-psa\.ChartParser\.v1"):
        parser.add_label("PLACE")
    assert parser.labels == known
