"""Which component is compared, and which tokens of a corpus count."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_psa.errors import InputError
from spacy_psa.studio.comparison.units import Units, find_component, read_gold
from tests.helpers.compared import rules
from tests.helpers.parsers import chart_model, make_parser, train_parser
from tests.helpers.pipelines import small_model


@pytest.fixture
def nlp():
    nlp = spacy.blank("en")
    nlp.add_pipe("ner", name="theirs")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("crf_chunker", name="chunks", config={"model": small_model(), "spans_key": "np"})
    nlp.add_pipe("crf_tagger", name="tags", config={"model": small_model()})
    return nlp


def test_a_component_of_this_package_comes_first(nlp):
    component = find_component("m", nlp, None)
    assert (component.name, component.units) == ("chunks", Units("chunks", "np"))


def test_the_second_model_gets_a_component_for_the_same_units(nlp):
    assert find_component("m", nlp, "chunks", "tags").name == "tags"
    assert find_component("m", nlp, "theirs", "entities").name == "theirs"
    assert find_component("m", rules({}), "ner", "entities").name == "rules"


def test_a_parser_is_compared_by_its_tags_if_it_has_a_tag_head():
    nlp = make_parser()
    train_parser(nlp)
    nlp.add_pipe("tagger")
    assert find_component("m", nlp, None).name == "tagger"
    with pytest.raises(InputError, match=r"m: no component for .*compared are tagger"):
        find_component("m", nlp, "parser")
    nlp = make_parser(chart_model(tag_hidden=8))
    train_parser(nlp)
    assert find_component("m", nlp, None).units == Units("tags")


@pytest.mark.parametrize(("name", "kind"), [("sentencizer", None), ("no", None), (None, "trees")])
def test_a_component_that_is_not_there_is_an_error_that_names_the_others(nlp, name, kind):
    with pytest.raises(InputError, match=r"m: no component for .* theirs, chunks, tags"):
        find_component("m", nlp, name, kind)


def test_overlapping_spans_are_refused(trained):
    trained.get_pipe("ner").decode = "threshold"
    with pytest.raises(InputError, match='decode = "threshold"'):
        find_component("m", trained, None)


def test_tokens_without_annotation_do_not_count(tmp_path):
    vocab = spacy.blank("en").vocab
    known = Doc(vocab, words=["Ada", "left", "Bob"])
    known.set_ents([Span(known, 0, 1, "PER")], missing=[known[2:3]])
    unknown = Doc(vocab, words=["Leeds"])
    DocBin(docs=[known, unknown]).to_disk(tmp_path / "gold.spacy")
    gold = read_gold(tmp_path / "gold.spacy", Units("entities"))
    assert gold.known.tolist() == [True, True, False, False]
    by_sentence = gold.by_sentence([(0, 1, "PER"), (2, 3, "PER"), (1, 3, "PER"), (3, 4, "LOC")])
    assert by_sentence == [[(0, 1, "PER")], []]


def test_units_count_the_tokens_of_the_corpus_and_belong_to_sentences(tmp_path):
    vocab = spacy.blank("en").vocab
    docs = [
        Doc(vocab, words=["Go"], tags=["VB"]),
        Doc(vocab, words=["Stop", "Go", "on"], sent_starts=[1, 1, 0], tags=["VB", "VB", "RP"]),
    ]
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    gold = read_gold(tmp_path / "gold.spacy", Units("tags"))
    assert gold.sentences == [(0, 1), (1, 2), (2, 4)]
    assert gold.units == [[(0, 1, "VB")], [(1, 2, "VB")], [(2, 3, "VB"), (3, 4, "RP")]]


def test_gold_without_such_annotation_is_an_error(tmp_path):
    DocBin(docs=[Doc(spacy.blank("en").vocab, words=["Go"])]).to_disk(tmp_path / "gold.spacy")
    with pytest.raises(InputError, match=r"gold\.spacy: no gold entities in it"):
        read_gold(tmp_path / "gold.spacy", Units("entities"))
