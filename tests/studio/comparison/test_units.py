"""The units that are compared, how predictions are matched with gold units, and the scores."""

import random

import numpy
import pytest
import spacy
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.scoring.sentence_counts import entity_counts
from spacy_psa.scoring.statistics import bootstrap_interval, paired_interval, sentence_p_value
from spacy_psa.studio.comparison.matching import cases, confusion, match
from spacy_psa.studio.comparison.scores import count_table, score_rows, significance
from spacy_psa.studio.comparison.units import Units, find_component, read_gold
from tests.helpers.compared import FIRST, GOLD, SECOND, marked_docs, rules
from tests.helpers.parsers import chart_model, make_parser, train_parser
from tests.helpers.pipelines import entities, small_model, text_docs


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


@pytest.mark.parametrize("factory", ["crf_spans", "spancat", "span_ruler"])
def test_components_of_spans_are_found_with_their_key(factory):
    nlp = spacy.blank("en")
    nlp.add_pipe(factory, config={"spans_key": "own"})
    assert find_component("m", nlp, None).units == Units("spans", "own")


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


@pytest.mark.parametrize(
    ("gold", "predicted", "kinds"),
    [
        ([(0, 2, "A")], [(0, 2, "A")], ["right"]),
        ([(0, 2, "A")], [(0, 2, "B")], ["wrong type"]),
        ([(0, 2, "A")], [(1, 2, "A")], ["wrong bounds"]),
        ([(0, 2, "A")], [(1, 3, "B")], ["wrong bounds and type"]),
        ([(0, 2, "A")], [(2, 3, "A")], ["missed", "invented"]),
        ([(0, 4, "A")], [(0, 1, "A"), (1, 4, "A")], ["wrong bounds", "invented"]),
        ([(0, 1, "A"), (1, 3, "A")], [(0, 3, "A")], ["missed", "wrong bounds"]),
        # Equal bounds before an equal type, an equal type before a larger overlap.
        ([(0, 2, "A")], [(0, 1, "A"), (0, 2, "B")], ["wrong type", "invented"]),
        ([(0, 4, "A")], [(0, 1, "A"), (1, 4, "B")], ["wrong bounds", "invented"]),
        # A right unit is not taken for another one.
        ([(0, 2, "A"), (0, 3, "A")], [(0, 3, "A")], ["missed", "right"]),
    ],
)
def test_each_kind_of_error_is_distinguished(gold, predicted, kinds):
    assert sorted(pair.kind for pair in match(gold, predicted)) == sorted(kinds)


def test_of_several_the_greatest_overlap_is_taken():
    pairs = match([(0, 4, "A")], [(0, 1, "A"), (1, 4, "A")])
    assert ((0, 4, "A"), (1, 4, "A")) in pairs


def test_each_unit_is_in_one_pair_and_no_pair_is_left_that_could_be_made():
    draw = random.Random(0)
    for _ in range(300):
        gold, predicted = (
            {
                (start, start + draw.randint(1, 3), draw.choice("AB"))
                for start in draw.choices(range(9), k=draw.randint(0, 5))
            }
            for _ in range(2)
        )
        pairs = match([*gold], [*predicted])
        assert sorted(p.gold for p in pairs if p.gold) == sorted(gold)
        assert sorted(p.predicted for p in pairs if p.predicted) == sorted(predicted)
        assert sum(p.kind == "right" for p in pairs) == len(gold & predicted)
        alone = [p.gold for p in pairs if p.predicted is None]
        others = [p.predicted for p in pairs if p.gold is None]
        assert not any(a[0] < b[1] and b[0] < a[1] for a in alone for b in others)
        assert all(a[0] < b[1] and b[0] < a[1] for a, b in pairs if a and b)


def test_an_error_says_what_each_model_made_of_it():
    gold = [(0, 2, "A"), (3, 4, "B"), (5, 6, "A")]
    first = match(gold, [(0, 2, "A"), (3, 4, "A"), (7, 8, "B")])
    second = match(gold, [(0, 1, "A"), (3, 4, "A"), (5, 6, "A"), (7, 8, "A")])
    assert [(case.gold, case.predicted, case.kinds) for case in cases([first, second])] == [
        ((0, 2, "A"), ((0, 2, "A"), (0, 1, "A")), ("right", "wrong bounds")),
        ((3, 4, "B"), ((3, 4, "A"), (3, 4, "A")), ("wrong type", "wrong type")),
        ((5, 6, "A"), (None, (5, 6, "A")), ("missed", "right")),
        (None, ((7, 8, "B"), (7, 8, "A")), ("invented", "invented")),
    ]


def test_a_model_that_rightly_finds_nothing_is_right():
    (case,) = cases([match([], []), match([], [(0, 1, "A")])])
    assert case.kinds == ("right", "invented")


def test_confusion_counts_each_pair_once():
    pairs = match([(0, 2, "A"), (3, 4, "A"), (6, 7, "B")], [(0, 1, "A"), (3, 4, "B"), (8, 9, "B")])
    table = confusion(pairs, ["A", "B"])
    assert table["rows"] == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert table["moved"] == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]


LABELS = ["LOC", "ORG", "PER"]


@pytest.fixture
def examples():
    """The predictions of two pipelines with their references."""
    predictions = []
    for nlp in (rules(FIRST), rules(SECOND)):
        references = marked_docs(GOLD, nlp.vocab)
        docs = [nlp(doc) for doc in text_docs(nlp, [doc.text for doc in references])]
        predictions.append([Example(*pair) for pair in zip(docs, references)])
    return predictions


@pytest.fixture
def table(examples):
    """The counts of the entities of two pipelines."""
    gold = [entities(example.reference) for example in examples[0]]
    models = [[entities(example.predicted) for example in own] for own in examples]
    return count_table(gold, models, LABELS)


def test_scores_are_those_that_were_counted_by_hand(table):
    rows = {row["label"]: row for row in score_rows(table, LABELS)}
    assert [model["counts"] for model in rows[None]["models"]] == [[2, 5, 4], [2, 3, 4]]
    first = {name: rows[None]["models"][0][name]["value"] for name in "prf"}
    assert first == pytest.approx({"p": 2 / 5, "r": 2 / 4, "f": 4 / 9})
    assert rows[None]["difference"]["value"] == pytest.approx(4 / 9 - 4 / 7)
    assert rows["ORG"]["gold"] == 0
    assert rows["ORG"]["models"][1]["counts"] == [0, 1, 0]


def test_scores_are_those_of_spacy(table, examples):
    rows = score_rows(table, LABELS)
    for model, own in enumerate(examples):
        theirs = get_ner_prf(own)
        for row in rows:
            wanted = theirs["ents_per_type"].get(row["label"], {"p": 0, "r": 0, "f": 0})
            if row["label"] is None:
                wanted = {name: theirs[f"ents_{name}"] for name in "prf"}
            assert {name: row["models"][model][name]["value"] for name in "prf"} == pytest.approx(
                wanted
            )


def test_intervals_and_significance_are_those_of_experiments(table, examples):
    first, second = (numpy.array([entity_counts(own)], dtype=float) for own in examples)
    row = score_rows(table, LABELS)[0]
    assert row["models"][0]["f"]["interval"] == pytest.approx(bootstrap_interval(first))
    assert row["models"][1]["f"]["interval"] == pytest.approx(bootstrap_interval(second))
    assert row["difference"]["interval"] == pytest.approx(paired_interval(first, second))
    assert significance(table) == sentence_p_value(first, second)


def test_one_model_has_no_difference(table):
    assert score_rows(table[:1], LABELS)[0]["difference"] is None
    assert significance(table[:1]) is None
