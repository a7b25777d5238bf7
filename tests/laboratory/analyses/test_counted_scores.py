"""Scores by the length of sentences, against a plain loop."""

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses.counted_scores import (
    counted_scores,
    counts_by_length,
    draw_lengths,
)
from spacy_psa.scoring.sentence_counts import Count, by_length, total
from tests.helpers.pipelines import make_nlp
from tests.laboratory.analyses.test_parser_ablation import examples as tree_examples
from tests.laboratory.analyses.test_parser_ablation import make as make_parser


def example(sentences):
    """A doc; each sentence has a number of tokens, and gold and predicted places of entities."""
    vocab = spacy.blank("en").vocab
    words, starts, gold, found = [], [], [], []
    for tokens, wanted, given in sentences:
        gold += [len(words) + place for place in wanted]
        found += [len(words) + place for place in given]
        starts += [True] + [False] * (tokens - 1)
        words += ["w"] * tokens
    docs = []
    for places in (found, gold):
        doc = Doc(vocab, words=words, sent_starts=starts)
        doc.set_ents([Span(doc, place, place + 1, "X") for place in places])
        docs.append(doc)
    return Example(*docs)


def test_each_sentence_is_in_the_bin_of_its_length():
    nlp = make_nlp()
    made = [
        example([(2, [0], [0]), (5, [1, 2], [2, 3]), (9, [], [8])]),
        example([(4, [3], []), (10, [0], [0])]),
    ]
    score, counts = counts_by_length(nlp, made)
    assert score == "ents_f"
    assert counts == [
        (2, (1, 1, 1)),
        (5, (1, 2, 2)),
        (9, (0, 1, 0)),
        (4, (0, 0, 1)),
        (10, (1, 1, 1)),
    ]
    bins = by_length(counts, [5, 10])
    assert [(each.name, each.sentences, each.units) for each in bins] == [
        ("1-4", 2, (1, 1, 2)),
        ("5-9", 2, (1, 3, 2)),
        ("10+", 1, (1, 1, 1)),
    ]
    assert [each.units.f1 for each in bins] == pytest.approx([2 / 3, 2 / 5, 1.0])


def test_a_score_that_the_pipeline_lacks_is_an_error():
    assert [*counted_scores(make_nlp())] == ["ents_f"]
    with pytest.raises(InputError, match="has no tag_acc that is counted; it has ents_f"):
        counts_by_length(make_nlp(), [], "tag_acc")
    with pytest.raises(InputError, match="it has none"):
        counts_by_length(spacy.blank("en"), [])


def test_the_f1_of_trees_is_counted_by_the_name_that_trainings_give_it():
    nlp = make_parser()
    made = tree_examples(nlp)
    nlp.initialize(lambda: made)
    score, counts = counts_by_length(nlp, made)
    assert score == "tree_f" and [*counted_scores(nlp)] == ["tree_f", "constituents_f"]
    assert counts == counts_by_length(nlp, made, "constituents_f")[1]
    for eg, doc in zip(made, nlp.pipe(eg.predicted for eg in made), strict=True):
        eg.predicted = doc
    f1 = total([count for _, count in counts_by_length(nlp, made, "tree_f")[1]]).f1
    assert f1 == pytest.approx(nlp.get_pipe("parser").score(made)["tree_f"])


def test_two_models_are_drawn_over_each_other():
    bins = by_length([(3, Count(1, 2, 2)), (30, Count(0, 0, 0))], [5, 10])
    figure = draw_lengths({"one": bins, "_two": bins}, "ents_f")
    above, below = figure.axes
    assert [list(line.get_ydata()) for line in above.lines] == [[50.0], [50.0]]  # none without gold
    assert [patch.get_height() for patch in below.patches] == [1, 0, 1]
    assert [text.get_text() for text in above.get_legend().get_texts()] == ["one", "_two"]
