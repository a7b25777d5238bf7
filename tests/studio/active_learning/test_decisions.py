"""Decisions one after the other, and those on which several annotators agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.decisions import Decided, Decision, agreement
from tests.helpers.decided import accept, complete, reject

LENGTH = 5


@st.composite
def decisions(draw):
    start = draw(st.integers(0, LENGTH - 1))
    end = draw(st.integers(start + 1, LENGTH))
    verdict = draw(st.sampled_from(["accepted", "rejected", "complete", "open", "skipped"]))
    labels = ["PER", "ORG"] + [""] * (verdict != "accepted")
    return Decision(verdict, start, end, draw(st.sampled_from(labels)))


@given(st.lists(decisions(), max_size=12), st.integers(0, 12))
def test_what_is_known_never_contradicts_itself(made, split):
    decided = Decided().then(made)
    assert decided == Decided().then(made[:split]).then(made[split:])
    taken = [i for start, end, _ in decided.accepted for i in range(start, end)]
    assert len(taken) == len(set(taken))
    assert decided.outside.isdisjoint(taken)
    refused = {*decided.rejected, *((s, e, "") for s, e, _ in decided.rejected)}
    for start, end, label in decided.accepted:
        assert (start, end, label) not in decided.rejected
        assert (start, end, "") not in {span for span in refused if span in decided.rejected}
    if made and made[-1].verdict == "accepted":
        assert made[-1].span in decided.accepted
    if made and made[-1].verdict == "complete":
        assert decided.covers(made[-1].end, made[-1].start)
    if made and made[-1].verdict == "open":
        assert decided.tokens.isdisjoint(range(made[-1].start, made[-1].end))


def test_what_nobody_decided_stays_undecided():
    decided = Decided().then([accept(1, 2, "PER"), reject(3, 4, "ORG")])
    assert decided.tokens == {1}
    assert not decided.covers(LENGTH)
    assert decided.evidence == {"require": [(1, 2, "PER")], "forbid": [(3, 4, "ORG")], "allow": {}}


def test_a_correction_leaves_the_other_tokens_of_the_old_span_undecided():
    decided = Decided().then([accept(0, 3, "PER"), complete(0, 5), accept(0, 2, "PER")])
    assert decided.accepted == ((0, 2, "PER"),)
    assert decided.outside == {3, 4}


def test_a_rejected_span_that_was_accepted_leaves_its_tokens_undecided():
    decided = Decided().then([accept(0, 2, "PER"), complete(0, 5), reject(0, 2, "PER")])
    assert decided == Decided((), ((0, 2, "PER"),), frozenset({2, 3, 4}))


BAD = [
    accept(2, 2, "PER"),
    accept(0, 6, "PER"),
    accept(0, 1, ""),
    Decision("complete", 0, 1, "PER"),
    Decision("skipped", 0, 1, "PER"),
    accept(0, 1, "DATE"),
    reject(0, 1, "DATE"),
]


@pytest.mark.parametrize("bad", BAD)
def test_a_decision_about_no_stretch_or_without_label_is_an_error(bad):
    with pytest.raises(InputError):
        bad.check(LENGTH, ["PER", "ORG"])


@pytest.mark.parametrize("bad", [complete(0, 2), accept(0, 2, "PER"), reject(0, 1)])
def test_tags_have_no_decision_about_several_words_or_about_none(bad):
    bad.check(LENGTH, ["PER"])
    with pytest.raises(InputError, match="each word has"):
        bad.check(LENGTH, ["PER"], tags=True)


@given(st.lists(st.lists(decisions(), max_size=6), min_size=1, max_size=3))
def test_an_agreement_has_nothing_that_an_annotator_contradicts(made):
    views = [Decided().then(own) for own in made]
    decided, disagreements = agreement(views)
    for span in decided.accepted:
        assert any(span in view.accepted for view in views)
        for view in views:
            assert span in view.accepted or not set(range(*span[:2])) & view.tokens
    for token in decided.outside:
        assert any(token in view.outside for view in views)
        assert not any(s <= token < e for view in views for s, e, _ in view.accepted)
    every = {span for view in views for span in view.accepted}
    assert every == {*decided.accepted, *disagreements}
    assert agreement([views[0], views[0]]) == (views[0], [])


def test_who_rejects_bounds_without_a_label_does_not_win_over_who_accepts_them():
    ann, bob = Decided().then([accept(0, 1, "LOC")]), Decided().then([reject(0, 1, "")])
    assert agreement([ann, bob]) == (Decided(), [(0, 1, "LOC")])


class Counted(int):
    """A number that counts how often it is compared."""

    count = 0

    def __lt__(self, other):
        Counted.count += 1
        return int(self) < int(other)

    def __gt__(self, other):
        Counted.count += 1
        return int(self) > int(other)

    __hash__ = int.__hash__

    def __eq__(self, other):
        Counted.count += 1
        return int(self) == int(other)


@pytest.mark.parametrize("verdict", ["accepted", "rejected", "open"])
def test_many_decisions_about_a_text_take_no_quadratic_time(verdict):
    counts = []
    for n in (500, 1000):
        spans = [(Counted(i), Counted(i + 1), "PER") for i in range(0, 2 * n, 2)]
        Counted.count = 0
        Decided().then(
            [Decision("accepted", *s) for s in spans] + [Decision(verdict, *s) for s in spans]
        )
        counts.append(Counted.count)
    assert counts[1] < 2.5 * counts[0]


def test_annotators_agree_on_tokens_over_which_they_accept_no_other_spans():
    ann = Decided(((0, 2, "PER"),), (), frozenset({2, 3}))
    bob = Decided(((0, 1, "PER"),), (), frozenset({3}))
    decided = Decided(outside=frozenset({2, 3}))
    assert agreement([ann, bob]) == (decided, [(0, 1, "PER"), (0, 2, "PER")])
