"""Sets that hold the truth: the threshold, the guarantee, and the sets of components."""

import numpy
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.analysis.conformal import least_probability, observed_coverage, truth_probabilities
from spacy_psa.errors import InputError
from spacy_psa.pipeline.coverage import Coverage
from tests.helpers.analyses import enumerate_doc
from tests.helpers.nested_pipelines import DEEP, deep_pipeline
from tests.helpers.nested_pipelines import example as nested_example
from tests.helpers.pipelines import entities, make_examples, random_nlp, small_model

PROBABILITY = st.integers(0, 12).map(lambda n: n / 12)
DOCUMENTS = st.lists(st.lists(PROBABILITY, min_size=1, max_size=4), min_size=2, max_size=12)


@given(DOCUMENTS, st.sampled_from([0.3, 0.5, 0.6, 0.8]))
def test_the_truth_of_a_document_left_out_is_in_the_sets_as_often_as_promised(documents, level):
    """Each of K + 1 documents is the new one in turn: what exchangeability averages over."""
    others = [[*documents[:i], *documents[i + 1 :]] for i in range(len(documents))]
    if len(documents) - 1 < level / (1 - level) - 1e-9:
        with pytest.raises(InputError, match="needs at least"):
            least_probability(others[0], level)
        return
    held = [
        observed_coverage([new], least_probability(rest, level))
        for new, rest in zip(documents, others)
    ]
    assert numpy.mean(held) >= level - 1e-9


@given(st.lists(PROBABILITY, min_size=4, max_size=30), st.sampled_from([0.3, 0.5, 0.8]))
def test_with_one_item_a_document_it_is_the_quantile_of_split_conformal_prediction(values, level):
    rank = int(numpy.ceil(level * (len(values) + 1) - 1e-9))
    assert least_probability([[value] for value in values], level) == sorted(values)[-rank]


def test_documents_without_items_do_not_count():
    assert least_probability([[0.9], [], [0.8], []], 0.6) == least_probability([[0.9], [0.8]], 0.6)
    assert observed_coverage([[], []], 0.5) is None


def test_a_level_of_1_is_not_possible():
    with pytest.raises(ValueError, match=r"level is 1"):
        least_probability([[0.5]], 1)


def test_probabilities_of_gold_spans_are_those_of_enumeration():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    examples = make_examples(nlp, ["[Ada|PER] met [Mary Evans|PER]", "Bath grew", "[Acme|ORG]"])
    found = truth_probabilities(ner, examples)
    assert len(found) == len(examples)
    for example, values in zip(examples, found):
        truth = enumerate_doc(ner, example.predicted)
        assert values == pytest.approx([truth.of(e) for e in entities(example.reference)], abs=1e-6)


def test_sentences_of_a_document_are_one_document():
    nlp = random_nlp()
    examples = make_examples(nlp)
    for example in examples:
        example.reference.user_data["document"] = "d"
    apart = truth_probabilities(nlp.get_pipe("ner"), make_examples(nlp))
    (together,) = truth_probabilities(nlp.get_pipe("ner"), examples)
    assert together == pytest.approx([value for values in apart for value in values])


def test_a_gold_span_that_the_model_cannot_give_has_the_probability_0():
    nlp = random_nlp()
    words = ["Ada", "met", "Bob", "."]
    unknown = Doc(nlp.vocab, words, ents=["B-SHIP", "O", "O", "O"])
    crossing = Doc(nlp.vocab, words, ents=["O", "B-PER", "I-PER", "O"])
    split = Doc(nlp.vocab, words, sent_starts=[True, False, True, False])
    inside = Doc(nlp.vocab, ["AdaB", "met", "."], [True, False, False], ents=["B-PER", "O", "O"])
    apart = Doc(nlp.vocab, ["Ada", "B", "met", "."], [False, True, False, False])
    halved = Doc(nlp.vocab, apart.text.split(), ents=["O", "B-PER"])
    examples = [
        Example(Doc(nlp.vocab, words), unknown),
        Example(split, crossing),
        Example(apart, inside),
        Example(Doc(nlp.vocab, [halved.text]), halved),
    ]
    found = truth_probabilities(nlp.get_pipe("ner"), examples)
    assert [values == [0.0] for values in found] == [True, True, False, True]


def test_the_sets_of_a_recognizer_are_all_spans_that_are_probable_enough():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    ner.calibrated.coverage = Coverage(0.9, 0.05, 100)
    doc = nlp.make_doc("Ada met Bob")
    truth = enumerate_doc(ner, doc)
    every = [(s, e, label) for s in range(3) for e in range(s + 1, 4) for label in ner.labels]
    wanted = {span: truth.of(span) for span in every if truth.of(span) >= 0.05}
    (found,) = ner.prediction_sets([doc])
    assert {(s.start, s.end, s.label_): p for s, p in found} == pytest.approx(wanted, abs=1e-6)
    assert not doc.ents and not doc.spans
    assert ner.prediction_sets([nlp.make_doc("")]) == [[]]


@pytest.fixture
def tagger():
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("crf_tagger", config={"model": small_model()})
    for tag in ("ADJ", "NOUN", "VERB"):
        pipe.add_label(tag)
    nlp.initialize()
    return pipe


def test_the_sets_of_a_tagger_have_the_best_tag_and_all_that_are_probable_enough(tagger):
    doc = Doc(tagger.vocab, ["fish", "swim"])
    marginals = tagger.marginals(doc)
    for least in (0.0, 0.3, 1.0):
        tagger.calibrated.coverage = Coverage(0.9, least, 100)
        (sets,) = tagger.prediction_sets([doc])
        for row, tags in zip(marginals, sets, strict=True):
            wanted = {tag for tag, p in zip(tagger.tags, row) if p >= least}
            assert {tag for tag, _ in tags} == wanted | {tagger.tags[row.argmax()]}
            assert tags == sorted(tags, key=lambda tag: -tag[1])


def test_probabilities_of_gold_tags_are_marginals_and_missing_tags_do_not_count(tagger):
    gold = Doc(tagger.vocab, ["fish", "swim", "now"], tags=["NOUN", "", "ADV"])
    example = Example(Doc(tagger.vocab, ["fish", "swim", "now"]), gold)
    noun = tagger.marginals(example.predicted)[0, tagger.tags.index("NOUN")]
    assert truth_probabilities(tagger, [example]) == [[pytest.approx(noun), 0.0]]


def test_coverage_is_saved_with_the_component(tagger, tmp_path):
    tagger.calibrated.coverage = Coverage(0.9, 0.02, 215)
    tagger.to_disk(tmp_path)
    other = spacy.blank("en").add_pipe("crf_tagger", config={"model": small_model()})
    assert other.from_disk(tmp_path).calibrated.coverage == Coverage(0.9, 0.02, 215)
    tagger.calibrated.coverage = None
    assert other.from_bytes(tagger.to_bytes()).calibrated.coverage is None


def test_without_coverage_there_are_no_sets(tagger):
    with pytest.raises(InputError, match=r"has no coverage yet: run `spacy-psa calibrate"):
        tagger.prediction_sets([])


@pytest.mark.parametrize("value", [0.9, (0.9, 0.1), (1.5, 0.1, 3), (0.9, -1, 3), "abc"])
def test_a_coverage_that_cannot_be_is_refused(tagger, value):
    with pytest.raises(InputError, match="coverage is"):
        tagger.calibrated.coverage = value


def test_a_span_that_is_annotated_twice_is_one_truth():
    nlp = deep_pipeline()
    pipe = nlp.get_pipe("crf_spans")
    once, twice = (nested_example(nlp, DEEP, [(0, 1, "PER")] * times) for times in (1, 2))
    assert truth_probabilities(pipe, [twice]) == truth_probabilities(pipe, [once])
    assert len(truth_probabilities(pipe, [twice])[0]) == 1
