"""Document memory and context of sentences against plain double loops."""

from functools import partial

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.kernels import available
from spacy_psa.modules import documents
from spacy_psa.modules.documents import (
    DocumentMemory,
    SentenceContext,
    nearby_sentences,
    nearest_occurrences,
    without,
)
from tests.helpers.documents import linear, read_one_by_one
from tests.helpers.modules import randomised, with_gradients

WIDTH, INNER = 6, 4
OCCURRENCES = [[2, 5, -1], [-1, -1, -1], [0, 5, -1], [4, -1, -1], [3, -1, -1], [2, 0, -1]]
ONE_WAY = [[5, -1, -1], [-1, -1, -1], [0, 5, -1], [-1, -1, -1], [3, -1, -1], [0, -1, -1]]
"""Tokens 2 and 4 are read by none, and token 3 reads none."""
LENGTHS = [2, 1, 3]
NEAR = [[0, 1, -1], [1, 0, 2], [2, 1, -1]]


def memory_looped(module, x, occurrences):
    """The formulas of the module, token by token."""
    rows = []
    for h, others in zip(x, occurrences.tolist(), strict=True):
        others = [j for j in others if j >= 0]
        if not others:
            rows.append(h)
            continue
        query = linear(module.query, h)
        context = read_one_by_one(module, query, [x[j] for j in others])
        added = torch.tanh(linear(module.project, context))
        gate = torch.sigmoid(linear(module.gate, torch.cat([query, context])))
        rows.append(gate * h + (1 - gate) * added)
    return torch.stack(rows)


def context_looped(module, x, lengths, near):
    """The formulas of the module, sentence by sentence and token by token."""
    sentences = x.split(lengths.tolist())
    means = [sum(sentence) / len(sentence) for sentence in sentences]
    rows = []
    for i, sentence in enumerate(sentences):
        query = linear(module.query, means[i])
        context = read_one_by_one(module, query, [means[j] for j in near[i] if j >= 0])
        added = torch.tanh(linear(module.project, context))
        for h in sentence:
            of_token = linear(module.gate_token, linear(module.token, h))
            gate = torch.sigmoid(of_token + linear(module.gate_context, context))
            rows.append(gate * h + (1 - gate) * added)
    return torch.stack(rows)


def states():
    torch.manual_seed(1)
    return torch.randn(6, WIDTH, dtype=torch.float64)


CASES = {
    "memory": (DocumentMemory, memory_looped, torch.tensor(OCCURRENCES)),
    "one way": (DocumentMemory, memory_looped, torch.tensor(ONE_WAY)),
    "context": (SentenceContext, context_looped, torch.tensor(LENGTHS), torch.tensor(NEAR)),
}


@pytest.mark.parametrize("scoring", ["attention", "mean"])
@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_those_of_a_double_loop(case, scoring):
    make, looped, *places = CASES[case]
    module, x = randomised(make(WIDTH, INNER, scoring=scoring, dropout=0.0)), states()
    unused = {"query", "key"} if scoring == "mean" else set()
    unused -= {"query"} if make is DocumentMemory else set()
    used = [p for name, p in module.named_parameters() if name.partition(".")[0] not in unused]
    inputs = [x.requires_grad_(), *used]
    ours = with_gradients(module(x, *places), inputs)
    theirs = with_gradients(looped(module, x, *places), inputs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.skipif(not available(), reason="numba does not work here")
@pytest.mark.parametrize("scoring", ["attention", "mean"])
@pytest.mark.parametrize("occurrences", [OCCURRENCES, ONE_WAY], ids=["both ways", "one way"])
@pytest.mark.parametrize("rows", [2, 1024])
def test_annotation_in_blocks_is_that_of_training(scoring, occurrences, monkeypatch, rows):
    monkeypatch.setattr(documents, "BLOCK_ROWS", rows)
    memory = randomised(DocumentMemory(WIDTH, INNER, scoring=scoring, dropout=0.0)).float()
    x, places = states().float(), torch.tensor(occurrences)
    expected = memory(x, places)
    with torch.no_grad():
        before = x.clone()
        torch.testing.assert_close(memory(x, places), expected)
        assert torch.equal(x, before)


def test_a_token_without_other_occurrences_keeps_its_state():
    memory, x = randomised(DocumentMemory(WIDTH, INNER, dropout=0.0)), states()
    assert torch.equal(memory(x, torch.tensor(OCCURRENCES))[1], x[1])
    assert torch.equal(memory(x, torch.full((6, 3), -1)), x)


@pytest.mark.parametrize("case", ["memory", "context"])
def test_full_dropout_leaves_only_the_gated_states(case):
    make, _, *places = CASES[case]
    module, x = randomised(make(WIDTH, INNER, dropout=1.0)).train(), states()
    y = module(x, *places)
    reads = torch.arange(6) != 1 if case == "memory" else torch.full((6,), True)
    assert (y[reads].abs() < x[reads].abs()).all() and (y * x > 0).all()
    assert torch.equal(y[~reads], x[~reads])


def test_memory_dropout_leaves_some_tokens_as_they_are_only_in_training():
    module = randomised(DocumentMemory(WIDTH, INNER, dropout=0.0, memory_dropout=0.5)).train()
    x, places = states(), torch.tensor(OCCURRENCES)
    expected = memory_looped(module, x, places)
    with_others = [i for i, others in enumerate(OCCURRENCES) if max(others) >= 0]
    kept = {i: set() for i in with_others}
    for _ in range(50):
        y = module(x, places)
        for i in with_others:
            kept[i].add(torch.equal(y[i], x[i]))
            assert torch.equal(y[i], x[i]) or torch.allclose(y[i], expected[i])
    assert all(each == {True, False} for each in kept.values())
    torch.testing.assert_close(module.eval()(x, places), expected)


def test_with_a_memory_dropout_of_one_training_has_no_memory():
    module, x = randomised(DocumentMemory(WIDTH, INNER, memory_dropout=1.0)).train(), states()
    assert torch.equal(module(x, torch.tensor(OCCURRENCES)), x)


# Places of words and sentences


@pytest.fixture(params=["kernel", "numpy"])
def path(request, monkeypatch):
    if request.param == "kernel" and not available():
        pytest.skip("numba does not work here")
    monkeypatch.setattr(documents, "available", lambda: request.param == "kernel")


def searched(words, documents, most):
    rows = []
    for i, word in enumerate(words):
        places = [
            (abs(j - i), j)
            for j in range(len(words))
            if j != i and words[j] == word and documents[j] == documents[i]
        ]
        nearest = [j for _, j in sorted(places)[:most]]
        rows.append(nearest + [-1] * (most - len(nearest)))
    return rows


@given(
    tokens=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=40),
    most=st.integers(1, 5),
)
def test_the_two_walks_return_what_a_search_returns(tokens, most):
    tokens.sort(key=lambda token: token[1])  # documents follow each other
    words, numbers = (list(column) for column in zip(*tokens, strict=True))
    expected = searched(words, numbers, most)
    for fast in {False, available()}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(documents, "available", partial(bool, fast))
            places = nearest_occurrences(
                numpy.array(words, dtype="uint64"), numpy.array(numbers), most
            )
        left = [[-1] * (most - places.shape[1])] * len(words)  # columns that no word needs
        assert [[*row, *rest] for row, rest in zip(places.tolist(), left)] == expected


def test_memory_depends_on_the_words_and_not_on_the_most_that_is_asked_for(path):
    words, numbers = numpy.array([7, 7, 7, 8]), numpy.array([0, 0, 0, 0])
    places = nearest_occurrences(words, numbers, most=10**12)
    assert places.tolist() == [[1, 2], [0, 2], [1, 0], [-1, -1]]


def test_one_word_ten_thousand_times_has_only_its_neighbours(path):
    count = 10_000
    places = nearest_occurrences(numpy.zeros(count), numpy.zeros(count, dtype="int64"), most=4)
    assert places.shape == (count, 4)
    assert places[5000].tolist() == [4999, 5001, 4998, 5002]
    assert places[0].tolist() == [1, 2, 3, 4]


@given(
    words=st.lists(st.integers(0, 3), min_size=1, max_size=30),
    most=st.integers(1, 5),
    data=st.data(),
)
def test_occurrences_that_are_not_left_out_keep_their_order(words, most, data):
    left_out = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    occurrences = nearest_occurrences(numpy.array(words), numpy.zeros(len(words), int), most)
    kept = without(occurrences, numpy.array(left_out))
    assert kept.shape == occurrences.shape
    for row, before in zip(kept.tolist(), occurrences.tolist(), strict=True):
        expected = [place for place in before if place >= 0 and not left_out[place]]
        assert row == expected + [-1] * (len(before) - len(expected))


NEIGHBOURS = {
    "the nearest first": (
        [3, 3, 3, 3, 8],
        2,
        [[0, 1, 2, -1, -1], [1, 0, 2, 3, -1], [2, 1, 3, 0, -1], [3, 2, 1, -1, -1], [4, *4 * [-1]]],
    ),
    "memory depends on the longest document": (
        [0, 0, 0, 1],
        10**12,
        [[0, 1, 2, -1, -1], [1, 0, 2, -1, -1], [2, 1, 0, -1, -1], [3, *4 * [-1]]],
    ),
    "itself": ([0, 0, 1], 0, [[0], [1], [2]]),
}


@pytest.mark.parametrize("case", NEIGHBOURS)
def test_neighbours_are_in_the_document(case):
    numbers, window, expected = NEIGHBOURS[case]
    assert nearby_sentences(numpy.array(numbers), window).tolist() == expected
