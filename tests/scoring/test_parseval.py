"""PARSEVAL against cases worked by hand, a naive count, and EVALB where it is at hand."""

from dataclasses import replace
from pathlib import Path

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.parseval import evalb
from spacy_psa.corpora import ontonotes
from spacy_psa.corpora.jsonl import read_docs
from spacy_psa.corpora.trees import Parsed
from spacy_psa.errors import InputError
from spacy_psa.scoring.evalb_params import COLLINS, SPMRL, Params, read_params
from spacy_psa.scoring.parseval import score_pair
from spacy_psa.scoring.parseval_scorer import doc_trees
from tests.helpers.paths import SAMPLE
from tests.helpers.real_evalb import real_evalb
from tests.helpers.trees import JUDGED, parse_tree, parseval

COLLINS_PRM = """\
# the Penn Treebank's
DEBUG 0
MAX_ERROR 10
CUTOFF_LEN 40
LABELED 1
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL :
DELETE_LABEL ``
DELETE_LABEL ''
DELETE_LABEL .
DELETE_LABEL_FOR_LENGTH -NONE-
EQ_LABEL ADVP PRT
"""
SPMRL_PRM = """\
CUTOFF_LEN 70
DELETE_LABEL TOP
DELETE_LABEL ROOT
DELETE_LABEL S1
DELETE_LABEL -NONE-
DELETE_LABEL VROOT
DELETE_LABEL_FOR_LENGTH -NONE-
"""


def counts(gold: str, test: str, params: Params = COLLINS) -> tuple:
    """Status, brackets matched, gold, predicted and crossing, words, right tags."""
    score = score_pair(parse_tree(gold), parse_tree(test), params)
    return (
        *(score.status, score.matched, score.gold.total(), score.test.total()),
        *(score.crossing, score.words, score.tags),
    )


def test_figures_of_three_sentences_are_those_worked_by_hand():
    # Gold brackets 7 + 4 + 3, predicted 6 + 3 + 3, matched 6 + 2 + 3 (PRT is ADVP).
    figures = parseval((parse_tree(gold), parse_tree(test)) for gold, test in JUDGED)
    assert figures.recall == pytest.approx(11 / 14)
    assert figures.precision == pytest.approx(11 / 12)
    assert figures.f1 == pytest.approx(22 / 26)
    assert figures.exact == pytest.approx(1 / 3)
    assert figures.average_crossing == pytest.approx(1 / 3)
    assert figures.no_crossing == pytest.approx(2 / 3)
    assert figures.two_or_less_crossing == 1.0
    assert figures.tagging == pytest.approx(10 / 12)
    assert (figures.sentences, figures.valid, figures.errors, figures.skipped) == (3, 3, 0, 0)


def test_figures_by_label_keep_equal_labels_apart():
    found = parseval((parse_tree(gold), parse_tree(test)) for gold, test in JUDGED).per_label()
    assert list(found) == ["ADVP", "NP", "PP", "PRT", "S", "VP"]
    assert found["ADVP"] == {"p": 1.0, "r": 0.0, "f": 0.0}
    assert found["PRT"] == {"p": 0.0, "r": 1.0, "f": 0.0}
    assert found["NP"] == {"p": 4 / 5, "r": 4 / 6, "f": pytest.approx(8 / 11)}


@pytest.mark.parametrize(
    ("gold", "test", "expected"),
    [
        # Where punctuation is attached makes no difference.
        ("(S (NP (NN a) (, ,)) (VP (VB b)))", "(S (NP (NN a)) (, ,) (VP (VB b)))",
         ("ok", 3, 3, 3, 0, 2, 2)),
        # A constituent of punctuation alone is none, nor is one of traces.
        ("(S (NP (-NONE- *)) (VP (VB b)) (X (. .)))", "(S (VP (VB b)) (. .))",
         ("ok", 2, 2, 2, 0, 1, 1)),
        # A chain counts each of its parts: one NP of two is found.
        ("(S (NP (NP (NN a))))", "(S (NP (NN a)))", ("ok", 2, 3, 2, 0, 1, 1)),
        # Function tags and indices do not count in labels, but in parts of speech.
        ("(S (NP-SBJ-1 (NN a)) (VP=2 (VB b)))", "(S (NP (NN a)) (VP (VB-X b)))",
         ("ok", 3, 3, 3, 0, 2, 1)),
        # ADVP is PRT, also as a part of speech.
        ("(S (PRT (ADVP a)))", "(S (ADVP (PRT a)))", ("ok", 2, 2, 2, 0, 1, 1)),
        # Inner nodes of a deleted label do not count, what is below them does.
        ("(S (TOP (NP (NN a))))", "(S (NP (NN a)))", ("ok", 2, 2, 2, 0, 1, 1)),
        # Two predicted brackets cross one gold bracket each; a third crosses two.
        ("(S (A (X a) (X b)) (B (X c) (X d)))", "(S (X a) (C (C (X b) (X c))) (X d))",
         ("ok", 1, 3, 3, 2, 4, 4)),
        # Touching or containing is not crossing.
        ("(S (A (X a) (X b)) (X c))", "(S (X a) (X b) (B (X c)))", ("ok", 1, 2, 2, 0, 3, 3)),
    ],
)  # fmt: skip
def test_brackets_are_counted_by_collins_rules(gold, test, expected):
    assert counts(gold, test) == expected


@pytest.mark.parametrize(
    ("gold", "test", "reason"),
    [
        ("(S (NN a) (, ,))", "(S (NN a) (NN ,))", "1 words against 2"),
        ("(S (NN a) (, x) (NN y))", "(S (NN a) (NN x) (, y))", "'y' and 'x' differ"),
        ("(S (NN a))", "(S (NN b))", "'a' and 'b' differ"),
    ],
)
def test_sentences_whose_words_differ_after_deletion_are_errors_and_left_out(gold, test, reason):
    score = score_pair(parse_tree(gold), parse_tree(test))
    assert score.status == "error"
    assert reason in score.reason
    good = parse_tree("(S (NN a))")
    figures = parseval([(parse_tree(gold), parse_tree(test)), (good, good)])
    assert (figures.sentences, figures.errors, figures.valid) == (2, 1, 1)
    assert (figures.recall, figures.exact, figures.words) == (1.0, 1.0, 1)


def test_sentences_without_predicted_words_are_skipped():
    gold, only_stop = parse_tree("(S (NP (NN a)))"), parse_tree("(S (. .))")
    figures = parseval([(gold, Parsed([], [], [])), (only_stop, only_stop)])
    assert (figures.sentences, figures.skipped, figures.errors, figures.valid) == (2, 2, 0, 0)
    assert figures.f1 == figures.exact == figures.average_crossing == 0.0
    assert figures.tagging is None


def test_nothing_at_all_scores_zero():
    assert parseval([]).f1 == 0.0


def test_the_length_of_a_sentence_counts_its_punctuation_but_not_its_traces():
    gold = parse_tree("(S (NP (NN a)) (NP (-NONE- *)) (, ,) (. .))")
    assert score_pair(gold, gold).length == 3
    assert parseval([(gold, gold)], max_length=3).sentences == 1
    assert parseval([(gold, gold)], max_length=2).sentences == 0


def test_unlabelled_brackets_are_compared_by_their_words_alone():
    params = replace(COLLINS, labelled=False)
    gold, test = "(S (NP (NP (NN a))) (VP (VB b)))", "(X (VP (NN a)) (NP (VB b)))"
    assert counts(gold, test, params)[1:4] == (3, 4, 3)


def test_a_prediction_without_parts_of_speech_takes_the_gold_punctuation():
    gold = parse_tree("(S (NP (NN a)) (, ,) (VP (VB b)))")
    score = score_pair(gold, gold._replace(tags=[""] * 3))
    assert (score.status, score.matched, score.words) == ("ok", 3, 0)


def test_keeping_punctuation_counts_it_and_cuts_parts_of_speech():
    gold = "(VROOT (S (NP-SBJ (NN##x=1 a) (, ,)) (VP (VB b))))"
    test = "(S (NP##case=nom (NN##x=2 a)) (. ,) (VP (VB-PAST b)))"
    assert counts(gold, test, SPMRL) == ("ok", 2, 3, 3, 0, 3, 2)
    # Without it the comma goes, "#" is part of labels, and VROOT counts.
    assert counts(gold, test) == ("ok", 2, 4, 3, 0, 2, 0)


def test_a_quotation_mark_that_only_one_tree_deletes_is_put_back():
    params = replace(COLLINS, quote_labels=frozenset({"''", "POS"}))
    gold, test = "(S (NP (NN a) ('' ')) (VP (VB b)))", "(S (NP (NN a) (POS ')) (VP (VB b)))"
    assert counts(gold, test)[0] == counts(gold.replace("'')", "x)"), test)[0] == "error"
    assert counts(gold, test, params) == ("ok", 3, 3, 3, 0, 3, 2)
    assert counts(gold.replace("' ')", "' x)"), test.replace("S '", "S x"), params)[0] == "error"


def test_quotation_marks_are_the_same_if_as_many_kept_words_are_before_them():
    params = replace(COLLINS, quote_labels=frozenset({"''", "POS"}))
    gold = "(S (NP (NP (NN a) (POS ')) (NN b)) (VP (VB c)))"
    test = gold.replace("POS", "''")
    # EVALB counts 4 brackets of each tree, and all matched, in each of these.
    trace = "(NP (-NONE- *))"
    with_traces = [
        gold.replace("(VB c)", f"(VB c) {trace}"),
        gold.replace("(NN a)", f"{trace} (NN a) {trace}"),
        gold.replace("(NN a)", "(, ,) (NN a)"),
    ]
    for tree in with_traces:
        assert counts(tree, test, params) == ("ok", 4, 4, 4, 0, 4, 3)
        assert counts(test, tree, params) == ("ok", 4, 4, 4, 0, 4, 3)
    moved = test.replace("(NN a) ('' ')", "('' ') (NN a)")
    assert counts(gold, moved, params)[0] == "error"
    # A prediction that deletes all its words is skipped before.
    assert counts("(S (POS '))", "(S ('' '))", params)[0] == "skip"


def test_equal_words_and_chains_of_equal_labels_are_one_class():
    params = Params(equal_labels=(("A", "B"), ("C", "D"), ("B", "C")), equal_words=(("x", "y"),))
    assert counts("(S (A (NN x)))", "(S (D (NN y)))", params) == ("ok", 2, 2, 2, 0, 1, 1)


@pytest.mark.parametrize(
    ("text", "keep", "expected"), [(COLLINS_PRM, False, COLLINS), (SPMRL_PRM, True, SPMRL)]
)
def test_the_rules_of_known_files_are_the_built_in_ones(tmp_path, text, keep, expected):
    path = tmp_path / "rules.prm"
    path.write_text(text)
    assert read_params(path, keep_words=keep) == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("EQ_LABEL A", "EQ_LABEL A"),
        ("CUTOFF_LEN forty", "forty"),
        ("DELETE_LABEL", "has no value"),
        ("DELETE A", "is not a setting of EVALB"),
    ],
)
def test_a_wrong_line_among_the_rules_is_named(tmp_path, line, reason):
    path = tmp_path / "rules.prm"
    path.write_text(f"LABELED 0\n\n{line}\n")
    with pytest.raises(InputError, match=rf"rules\.prm:3: .*{reason}"):
        read_params(path)


LABELS = ("NP", "NP-SBJ", "VP", "ADVP", "PRT", "TOP", "X=1")
TAGS = ("NN", "NN", "VB", ",", ".", "ADVP", "PRT", "-NONE-")


@st.composite
def tree_pairs(draw) -> tuple[Parsed, Parsed]:
    """Two trees over the same words; parts of speech mostly delete the same ones."""
    size = draw(st.integers(1, 7))
    words = [str(i) for i in range(size)]
    tags = [draw(st.sampled_from(TAGS)) for _ in words]
    others = [draw(st.sampled_from((tag, tag, tag, "VB"))) for tag in tags]
    bounds = st.tuples(st.integers(0, size), st.integers(0, size)).map(sorted)

    def constituents() -> list[tuple[int, int, str]]:
        found: list[tuple[int, int, str]] = []
        for start, end in draw(st.lists(bounds.filter(lambda b: b[0] < b[1]), max_size=8)):
            if not any(s < start < e < end or start < s < end < e for s, e, _ in found):
                found.append((start, end, draw(st.sampled_from(LABELS))))
        return sorted(found, key=lambda span: (span[0], -span[1]))

    return Parsed(words, tags, constituents()), Parsed(words, others, constituents())


def naive(tree: Parsed) -> tuple[list[str], list[str], list[tuple[frozenset[int], str]]]:
    """Words and tags that are left, and brackets as sets of words, taking COLLINS.prm at its
    word."""
    left = [i for i, tag in enumerate(tree.tags) if tag not in (",", ".", "-NONE-")]
    found = []
    for start, end, label in tree.constituents:
        inside = frozenset(place for place, i in enumerate(left) if start <= i < end)
        if inside and label != "TOP":
            label = "ADVP" if label == "PRT" else label.split("-")[0].split("=")[0]
            found.append((inside, label))
    same = {"PRT": "ADVP"}
    return (
        [tree.words[i] for i in left],
        [same.get(tree.tags[i], tree.tags[i]) for i in left],
        found,
    )


@settings(max_examples=60)
@given(tree_pairs())
def test_counts_are_those_of_a_naive_comparison(pair):
    score = score_pair(*pair)
    (words, tags, ours), (other_words, other_tags, theirs) = map(naive, pair)
    if not other_words:
        assert score.status == "skip"
        return
    if words != other_words:
        assert score.status == "error"
        return
    rest, matched = list(ours), 0
    for bracket in theirs:
        if bracket in rest:
            rest.remove(bracket)
            matched += 1
    crossing = sum(any(a & b and a - b and b - a for a, _ in ours) for b, _ in theirs)
    assert (score.status, score.matched, score.crossing) == ("ok", matched, crossing)
    assert (score.gold.total(), score.test.total()) == (len(ours), len(theirs))
    assert score.recalled.total() == matched
    right = sum(one == other for one, other in zip(tags, other_tags, strict=True))
    assert (score.words, score.tags) == (len(words), right)


@settings(max_examples=40)
@given(tree_pairs(), tree_pairs())
def test_a_tree_against_itself_is_perfect_and_swapping_swaps_recall_and_precision(one, other):
    figures, swapped = parseval([one, other]), parseval([one[::-1], other[::-1]])
    if not figures.skipped and not swapped.skipped:
        assert (figures.recall, figures.precision) == (swapped.precision, swapped.recall)
        assert figures.exact == swapped.exact
    same = parseval([(one[0], one[0])])
    assert same.errors == 0
    assert same.exact == same.no_crossing == same.valid


# EVALB itself.


def sample_trees() -> list[Parsed]:
    found = read_docs(SAMPLE / "dev.jsonl", spacy.blank("en").vocab)
    return [tree for doc in found for tree in doc_trees(doc)]


def test_perturbed_trees_of_the_comparison_are_of_every_kind():
    gold, test = evalb.draw(sample_trees(), 400, seed=1)
    assert [t for t in test if t.words and parse_tree(evalb.bracketed(t)) != t] == []
    scores = [score_pair(*pair) for pair in zip(gold, test, strict=True)]
    assert {score.status for score in scores} == {"ok", "error", "skip"}
    assert any(score.crossing > 2 for score in scores)
    assert any(score.recalled != score.right for score in scores)
    assert any(score.exact for score in scores)


EVALB, EVALB_SPMRL = real_evalb("SPACY_PSA_EVALB"), real_evalb("SPACY_PSA_EVALB_SPMRL")


@pytest.mark.parametrize(
    ("program", "text", "params"),
    [
        pytest.param(
            EVALB, COLLINS_PRM, COLLINS, id="COLLINS",
            marks=pytest.mark.skipif(
                not EVALB, reason="SPACY_PSA_EVALB names no EVALB, or no C compiler"
            ),
        ),
        pytest.param(
            EVALB_SPMRL, SPMRL_PRM, SPMRL, id="SPMRL",
            marks=pytest.mark.skipif(
                not EVALB_SPMRL, reason="SPACY_PSA_EVALB_SPMRL names no EVALB, or no C compiler"
            ),
        ),
    ],
)  # fmt: skip
def test_figures_are_those_of_evalb_on_perturbed_trees(tmp_path, program, text, params):
    prm = tmp_path / "rules.prm"
    prm.write_text(text)
    pairs = zip(*evalb.draw(sample_trees(), 2000, seed=2), strict=True)
    if params.keep_words:  # see benchmarks/parseval/evalb.py
        pairs = [(g, t) for g, t in pairs if not t.words or len(g.words) == len(t.words)]
    gold, test = map(list, zip(*pairs, strict=True))
    found = evalb.compare(Path(program), prm, replace(params, cutoff=12), gold, test)
    assert found["figures_compared"] == 24
    assert found["figures_that_differ"] == found["sentences_that_differ"] == []


@pytest.mark.skipif(not EVALB, reason="SPACY_PSA_EVALB names no EVALB, or no C compiler")
def test_figures_are_those_of_evalb_on_section_23(tmp_path, corpora):
    prm = tmp_path / "rules.prm"
    prm.write_text(COLLINS_PRM)
    source = corpora / "ontonotes5" / "conll-2012-en.tar.xz"
    docs = ontonotes.read_docs(source, spacy.blank("en").vocab, sections={23})
    trees = [tree for doc in docs for tree in doc_trees(doc)]
    gold, test = evalb.draw(trees, sum(map(evalb.fits, trees)), seed=3)
    found = evalb.compare(Path(EVALB), prm, COLLINS, gold, test)
    assert len(gold) > 1500
    assert found["figures_that_differ"] == found["sentences_that_differ"] == []
