"""Partial credit: counted by hand, the best of all pairings, and compared with nervaluate."""

from itertools import pairwise, permutations

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy import registry
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_psa.scoring.partial_credit import KINDS, SCHEMES, outcomes, partial_credit
from spacy_psa.scoring.sentence_counts import entity_counts, total

GOLD = [(0, 2, "PER"), (3, 4, "PER"), (5, 8, "LOC"), (9, 10, "LOC")]
FOUND = [(0, 2, "PER"), (3, 4, "LOC"), (6, 8, "LOC"), (8, 9, "PER"), (10, 12, "PER")]


@st.composite
def flat(draw, most=4):
    """Spans without overlap over up to 10 tokens."""
    cuts = sorted(draw(st.sets(st.integers(0, 10), max_size=2 * most)))
    pairs = list(pairwise(cuts))
    kept = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    chosen = [pair for pair, keep in zip(pairs, kept) if keep][:most]
    return [(*pair, draw(st.sampled_from("AB"))) for pair in chosen]


nested = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 4), st.sampled_from("AB")), max_size=4, unique=True
).map(lambda spans: [(start, start + size, label) for start, size, label in spans])


def credit(gold, predicted, scheme):
    return sum(each.credit for each in outcomes(gold, predicted, scheme))


@pytest.mark.parametrize(
    ("scheme", "kinds", "p", "r"),
    [
        ("strict", (1, 2, 0, 1, 2), 1 / 5, 1 / 4),
        ("exact", (2, 1, 0, 1, 2), 2 / 5, 2 / 4),
        ("partial", (2, 0, 1, 1, 2), 2.5 / 5, 2.5 / 4),
        ("type", (2, 1, 0, 1, 2), 2 / 5, 2 / 4),
    ],
)
def test_schemes_are_those_counted_by_hand(scheme, kinds, p, r):
    scores = partial_credit([(GOLD, FOUND)])[scheme]
    assert tuple(scores[kind] for kind in KINDS) == kinds
    assert (scores["p"], scores["r"]) == (p, r)
    assert scores["f"] == pytest.approx(2 * p * r / (p + r))


def test_labels_and_lengths_have_the_precision_of_predicted_and_the_recall_of_gold_spans():
    scores = partial_credit([(GOLD, FOUND), ([], [(0, 6, "LOC")])])["exact"]
    assert scores["per_type"]["PER"] == {"p": 1 / 3, "r": 1.0, "f": 0.5, "gold": 2}
    assert scores["per_type"]["LOC"] == {"p": 1 / 3, "r": 0.0, "f": 0.0, "gold": 2}
    assert scores["per_length"]["4+"] == {"p": 0.0, "r": 0.0, "f": 0.0, "gold": 0}
    assert {length: row["gold"] for length, row in scores["per_length"].items()} == {
        "1": 2,
        "2": 1,
        "3": 1,
        "4+": 0,
    }


def _best(gold, predicted, scheme):
    """The most credit of all pairings."""
    if not gold:
        return 0.0
    (first, *rest), best = gold, _best(gold[1:], predicted, scheme)
    for other in predicted:
        overlap = first[0] < other[1] and other[0] < first[1]
        right = {
            "strict": first == other,
            "exact": first[:2] == other[:2],
            "partial": first[:2] == other[:2],
            "type": overlap and first[2] == other[2],
        }[scheme]
        gain = 1.0 if right else 0.5 if overlap and scheme == "partial" else 0.0
        left = [each for each in predicted if each != other]
        best = max(best, gain + _best(rest, left, scheme))
    return best


@settings(deadline=None, max_examples=60)
@given(gold=flat() | nested, predicted=flat() | nested, scheme=st.sampled_from(SCHEMES))
def test_the_credit_is_the_most_of_all_pairings_in_any_order(gold, predicted, scheme):
    pairs = outcomes(gold, predicted, scheme)
    assert sum(each.credit for each in pairs) == _best(gold, predicted, scheme)
    assert {*pairs} == {*outcomes(gold[::-1], predicted[::-1], scheme)}
    assert sorted(each.gold for each in pairs if each.gold) == sorted(gold)
    assert sorted(each.predicted for each in pairs if each.predicted) == sorted(predicted)


@settings(deadline=None, max_examples=60)
@given(gold=flat(3), predicted=flat(3))
def test_nervaluate_gives_the_same_in_its_best_order_and_never_more(gold, predicted):
    strategies = pytest.importorskip("nervaluate.strategies")
    from nervaluate.entities import Entity

    kinds = {"strict": "Strict", "exact": "Exact", "partial": "Partial", "type": "EntityType"}
    for scheme, name in kinds.items():
        evaluate = getattr(strategies, f"{name}Evaluation")().evaluate
        theirs = []
        for order in permutations(predicted):
            for wanted in permutations(gold):
                spans = [
                    [Entity(label, s, e - 1) for s, e, label in each] for each in (wanted, order)
                ]
                result, _ = evaluate(*spans, ["A", "B"])
                theirs.append(result.correct + result.partial / 2)
        assert max(theirs) == credit(gold, predicted, scheme)


def test_the_order_that_nervaluate_depends_on_costs_nothing_here():
    gold, predicted = [(0, 2, "A"), (2, 4, "A")], [(1, 3, "A"), (0, 1, "A")]
    assert credit(gold, predicted, "type") == credit(gold, predicted[::-1], "type") == 2


def test_a_long_doc_of_shifted_spans_is_paired():
    gold = [(3 * i, 3 * i + 3, "A") for i in range(3000)]
    shifted = [(start + 1, end + 1, label) for start, end, label in gold]
    assert credit(gold, shifted, "partial") == 1500
    assert credit([*gold, (8999, 9001, "A")], shifted[1:], "partial") == 1499.5


@pytest.fixture
def example():
    vocab = spacy.blank("en").vocab
    words = ["Ada", "Lee", "saw", "Leeds", "and", "Rome"]
    gold, own = Doc(vocab, words=words), Doc(vocab, words=words)
    gold.set_ents([Span(gold, 0, 2, "PER"), Span(gold, 3, 4, "LOC")], missing=[gold[5:6]])
    own.set_ents([Span(own, 0, 1, "PER"), Span(own, 3, 4, "PER"), Span(own, 5, 6, "LOC")])
    gold.spans["sc"], own.spans["sc"] = gold.ents, own.ents[:2]
    return Example(own, gold)


@pytest.mark.parametrize(("key", "name"), [(None, "ents"), ("sc", "sc")])
def test_the_scorer_has_spacys_scores_and_those_of_each_scheme(example, key, name):
    scores = registry.scorers.get("spacy-psa.partial_credit_scorer.v1")(key)([example])
    assert scores[f"{name}_f"] == scores[f"{name}_strict_f"] == 0
    assert [scores[f"{name}_{scheme}_f"] for scheme in SCHEMES] == [0, 0.5, 0.75, 0.5]
    assert scores[f"{name}_schemes"]["type"]["per_type"]["LOC"]["r"] == 0


def test_the_scorer_of_docs_without_annotation_has_no_scores():
    doc = Doc(spacy.blank("en").vocab, words=["Ada"])
    scores = registry.scorers.get("spacy-psa.partial_credit_scorer.v1")()(
        [Example(doc.copy(), doc)]
    )
    assert {*scores.values()} == {None}


def test_strict_is_the_f1_of_entity_counts(example):
    units = [([*map(tuple, [(0, 2, "PER"), (3, 4, "LOC")])], [(0, 1, "PER"), (3, 4, "PER")])]
    assert partial_credit(units)["strict"]["f"] == total(entity_counts([example])).f1
