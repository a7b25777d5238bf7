"""The scorer of constituents over spaCy's examples."""

from collections.abc import Sequence

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.trees import Parsed
from spacy_psa.scoring.parseval_scorer import doc_trees, parseval_scorer
from tests.helpers.trees import JUDGED, parse_tree, parseval

NLP = spacy.blank("en")


def docs(tree: str, **options: object) -> Doc:
    words, tags, spans = parse_tree(tree)
    return make_doc(NLP.vocab, words, tags, constituents=spans, **options)


def joined(trees: Sequence[str], starts: bool = True) -> Doc:
    """One doc of several sentences."""
    doc = Doc.from_docs([docs(tree) for tree in trees])
    if not starts:
        plain = Doc(NLP.vocab, words=[t.text for t in doc], tags=[t.tag_ for t in doc])
        plain.spans["constituents"] = [
            Span(plain, s.start, s.end, s.label) for s in doc.spans["constituents"]
        ]
        return plain
    return doc


def score(predicted: Doc, reference: Doc, **options: object) -> dict:
    return parseval_scorer(**options)([Example(predicted, reference)])


def test_the_scorer_is_registered_and_gives_the_figures_of_its_trees():
    assert spacy.registry.scorers.get("spacy-psa.parseval_scorer.v1") is parseval_scorer
    examples = [Example(docs(test), docs(gold)) for gold, test in JUDGED]
    figures = parseval((parse_tree(gold), parse_tree(test)) for gold, test in JUDGED)
    found = parseval_scorer()(examples)
    for short in ("p", "r", "f", "exact"):
        assert found.pop(f"tree_{short}") == found[f"constituents_{short}"]
    for printed in ("p", "r", "f", "per_type"):  # by `spacy evaluate --spans-key`
        for key in ("constituents", "sc"):  # without --spans-key it is "sc"
            assert found.pop(f"spans_{key}_{printed}") == found[f"constituents_{printed}"]
    assert found == {
        "constituents_p": figures.precision,
        "constituents_r": figures.recall,
        "constituents_f": figures.f1,
        "constituents_exact": figures.exact,
        "constituents_no_crossing": figures.no_crossing,
        "constituents_tag_acc": figures.tagging,
        "constituents_per_type": figures.per_label(),
    }


def test_sentences_of_one_doc_score_as_docs_of_one_sentence():
    single = parseval_scorer()([Example(docs(test), docs(gold)) for gold, test in JUDGED])
    golds, tests = zip(*JUDGED, strict=True)
    assert score(joined(tests), joined(golds)) == single
    # The predicted bounds are not asked for.
    assert score(joined(tests, starts=False), joined(golds)) == single


def test_without_gold_sentences_the_doc_is_one():
    golds, tests = zip(*JUDGED, strict=True)
    found = score(joined(tests), joined(golds, starts=False))
    assert found["constituents_f"] == pytest.approx(22 / 26)
    assert found["constituents_exact"] == 0.0


def test_a_constituent_over_two_gold_sentences_is_wrong_in_the_first():
    reference = joined(["(S (NN a))", "(S (NN b))"])
    predicted = joined(["(S (NN a))", "(S (NN b))"])
    predicted.spans["constituents"] = [*predicted.spans["constituents"], Span(predicted, 0, 2, "S")]
    found = score(predicted, reference)
    assert (found["constituents_p"], found["constituents_r"]) == (pytest.approx(2 / 3), 1.0)
    assert found["constituents_exact"] == 0.5


def test_a_prediction_without_the_group_has_found_nothing():
    gold = docs(JUDGED[0][0])
    bare = Doc(NLP.vocab, words=[token.text for token in gold])
    found = score(bare, gold)
    assert found["constituents_p"] == found["constituents_r"] == found["constituents_f"] == 0.0
    assert found["constituents_tag_acc"] is None


def test_a_reference_without_the_group_is_not_scored():
    bare = Doc(NLP.vocab, words=["a"])
    assert set(score(docs("(S (NN a))"), bare).values()) == {None}
    assert set(parseval_scorer()([]).values()) == {None}
    examples = [Example(docs("(S (NN a))"), bare), Example(docs("(S (NN b))"), docs("(S (NN b))"))]
    assert parseval_scorer()(examples)["constituents_f"] == 1.0


def test_docs_that_are_empty_or_only_punctuation_count_nothing():
    empty = Doc(NLP.vocab)
    empty.spans["constituents"] = []
    found = parseval_scorer()(
        [
            Example(empty.copy(), empty),
            Example(docs("(S (. .))"), docs("(X (. .))")),
            Example(docs("(S (NN a))"), docs("(S (NN a))")),
        ]
    )
    assert found["constituents_f"] == found["constituents_exact"] == 1.0


def test_punctuation_is_told_by_the_gold_parts_of_speech():
    gold, test = docs("(S (NP (NN a) (, ,)) (VP (VB b)))"), docs("(S (NP (NN a)) (X ,) (VP (, b)))")
    found = score(test, gold)
    assert found["constituents_f"] == 1.0
    assert found["constituents_tag_acc"] == 0.5
    kept = score(test, gold, keep_punctuation=True)
    assert kept["constituents_f"] == pytest.approx(2 / 3)
    assert kept["constituents_tag_acc"] == pytest.approx(1 / 3)


def test_white_space_and_other_tokens_do_not_move_constituents():
    gold = docs("(S (NP (NNP New) (NNP York)) (VP (VBZ is) (ADJP (JJ big))))")
    words = [*("New", "\n"), "Yor", "k", "is", "big"]
    test = Doc(NLP.vocab, words=words, spaces=[True, False, False, True, True, False])
    spans = [(0, 6, "S"), (0, 4, "NP"), (4, 6, "VP"), (5, 6, "ADJP"), (0, 3, "NP")]
    test.spans["constituents"] = [Span(test, *span) for span in spans]
    found = score(test, gold)
    assert (found["constituents_p"], found["constituents_r"]) == (4 / 5, 1.0)


def test_another_span_group_gives_its_name_to_the_scores():
    doc = docs("(S (NN a))")
    doc.spans["trees"] = list(doc.spans["constituents"])
    assert score(doc, doc.copy(), spans_key="trees")["trees_f"] == 1.0


def test_trees_of_a_doc_are_counted_from_their_sentence_without_white_space():
    doc = Doc(NLP.vocab, words=["a", "\n", "b", "c"], tags=["X", "_SP", "Y", "Z"])
    doc[0].is_sent_start, doc[3].is_sent_start = True, True
    doc.spans["constituents"] = [Span(doc, 0, 3, "S"), Span(doc, 2, 3, "NP"), Span(doc, 3, 4, "S")]
    assert list(doc_trees(doc)) == [
        Parsed(["a", "b"], ["X", "Y"], [(0, 2, "S"), (1, 2, "NP")]),
        Parsed(["c"], ["Z"], [(0, 1, "S")]),
    ]


@pytest.mark.parametrize(
    ("side", "key"), [("reference", "sc"), ("predicted", "sc"), ("predicted", "names")]
)
def test_the_usual_key_is_left_to_other_components_with_spans(side, key):
    """They may declare a score of this key in the config."""
    gold, test = docs(JUDGED[0][0]), docs(JUDGED[0][1])
    doc = gold if side == "reference" else test
    doc.spans[key] = []
    found = score(test, gold)
    assert "spans_constituents_f" in found and "spans_sc_f" not in found
