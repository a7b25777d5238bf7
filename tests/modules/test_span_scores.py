"""Span scores against a plain loop over spans with the formulas written out."""

from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.modules.span_scores import Sides, SpanScores, span_counts, span_fenceposts
from tests.helpers.modules import gradcheck, randomised
from tests.helpers.ragged import batch, one_by_one

LENGTHS = [3, 1, 5]


def built(width=6, labels=4, hidden=5, boundaries=False, sides="even_odd"):
    return randomised(SpanScores(width, labels, hidden, boundaries, sides), scale=1.0)


def plain(module, sentence, sides="even_odd"):
    """Scores of a sentence's spans; sentence: (n + 2, d), START and STOP with it."""
    places = torch.arange(sentence.shape[1])
    left = places % 2 == 0 if sides == "even_odd" else 2 * places < len(places)
    n = len(sentence) - 2
    first = torch.cat([module.left.weight, module.right.weight], 1)
    fenceposts = [torch.cat([sentence[k][left], sentence[k + 1][~left]]) for k in range(n + 1)]
    scores = []
    for i in range(n):
        for j in range(i + 1, n + 1):
            hidden = first @ (fenceposts[j] - fenceposts[i]) + module.bias
            centred = hidden - hidden.mean()
            hidden = centred / (centred.square().mean() + module.norm.eps).sqrt()
            hidden = torch.relu(hidden * module.norm.weight + module.norm.bias)
            scores.append(module.label.weight @ hidden + module.label.bias)
    return torch.stack(scores)


@pytest.mark.parametrize("sides", get_args(Sides))
@pytest.mark.parametrize("width", [6, 7])
def test_scores_are_the_formula_with_boundary_rows(width, sides):
    module = built(width, boundaries=True, sides=sides)
    y, longer = batch([n + 2 for n in LENGTHS], width)
    parts = y.split(longer.tolist())
    expected = torch.cat([plain(module, sentence, sides) for sentence in parts])
    torch.testing.assert_close(module(y, longer), expected)


@pytest.mark.parametrize("width", [6, 7])
def test_without_boundary_rows_start_and_stop_are_the_modules_own(width):
    module = built(width)
    y, lengths = batch(LENGTHS, width)
    start, stop = module.ends
    sentences = [torch.cat([start[None], s, stop[None]]) for s in y.split(LENGTHS)]
    expected = torch.cat([plain(module, sentence) for sentence in sentences])
    torch.testing.assert_close(module(y, lengths), expected)


@pytest.mark.parametrize("boundaries", [True, False])
def test_gradients_are_right(boundaries):
    module, (y, lengths) = built(4, 2, 3, boundaries), batch([4, 3], 4)
    assert gradcheck(module, y, lengths, fast_mode=False)
    module(y, lengths).sum().backward()
    assert all(p.grad is not None for p in module.parameters())


def test_spans_stand_by_start_and_then_by_end():
    start, end = span_fenceposts(torch.tensor([2, 1, 3]))
    fenceposts = list(zip(start.tolist(), end.tolist()))
    assert fenceposts[:3] == [(0, 1), (0, 2), (1, 2)]
    assert fenceposts[3:4] == [(3, 4)]
    assert fenceposts[4:] == [(5, 6), (5, 7), (5, 8), (6, 7), (6, 8), (7, 8)]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.booleans())
def test_counts_say_how_many_rows_come_out(sizes, boundaries):
    lengths = torch.tensor(sizes)
    module = built(boundaries=boundaries)
    taken = lengths + 2 if boundaries else lengths
    out = module(*batch(taken, 6))
    assert torch.equal(module.out_lengths(taken), span_counts(lengths))
    assert out.shape == (int(span_counts(lengths).sum()), 4)
    assert span_counts(lengths).tolist() == [n * (n + 1) // 2 for n in sizes]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_a_sentence_scores_alike_alone_and_in_a_batch(sizes):
    module, (y, lengths) = built(), batch(sizes, 6)
    torch.testing.assert_close(module(y, lengths), one_by_one(module, y, lengths))


@pytest.mark.parametrize("boundaries", [True, False])
def test_long_sentences_are_scored_in_blocks_with_the_same_result(boundaries, monkeypatch):
    module = built(boundaries=boundaries)
    y, lengths = batch([9, 4, 12] if boundaries else [7, 2, 10], 6)
    with torch.no_grad():
        whole = module(y, lengths)
        monkeypatch.setattr("spacy_psa.modules.span_scores.BLOCK", 12)
        torch.testing.assert_close(module(y, lengths), whole)
    assert module(y, lengths).requires_grad  # training is not in blocks
