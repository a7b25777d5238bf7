"""Context of sentences against a plain double loop."""

import numpy
import pytest
import torch

from spacy_psa.errors import InputError
from spacy_psa.modules.sentence_context import SentenceContext, nearby_sentences
from tests.helpers.documents import linear, read_one_by_one
from tests.helpers.modules import randomised, with_gradients

WIDTH, INNER = 6, 4
LENGTHS = [2, 1, 3]
NEAR = [[0, 1, -1], [1, 0, 2], [2, 1, -1]]


def looped(module, x, lengths, near):
    """The formulas of the module, sentence by sentence and token by token."""
    sentences = x.split(lengths)
    means = [sum(sentence) / len(sentence) for sentence in sentences]
    rows = []
    for i, sentence in enumerate(sentences):
        others = [means[j] for j in near[i] if j >= 0]
        query = linear(module.query, means[i])
        found = read_one_by_one(module, query, others)
        added = torch.tanh(linear(module.project, found))
        for h in sentence:
            seen = linear(module.gate_token, linear(module.token, h))
            gate = torch.sigmoid(seen + linear(module.gate_context, found))
            rows.append(gate * h + (1 - gate) * added)
    return torch.stack(rows)


@pytest.fixture(params=["attention", "mean"])
def context(request):
    return randomised(SentenceContext(WIDTH, INNER, scoring=request.param, dropout=0.0))


def states():
    torch.manual_seed(1)
    return torch.randn(sum(LENGTHS), WIDTH, dtype=torch.float64)


def test_the_output_is_that_of_a_double_loop(context):
    x = states()
    found = context(x, torch.tensor(LENGTHS), torch.tensor(NEAR))
    torch.testing.assert_close(found, looped(context, x, LENGTHS, NEAR))


def test_gradients_are_those_of_a_double_loop(context):
    x = states().requires_grad_()
    asks = {"query", "key"} if context.scoring == "mean" else set()
    used = [p for name, p in context.named_parameters() if name.partition(".")[0] not in asks]
    inputs = [x, *used]
    found = with_gradients(context(x, torch.tensor(LENGTHS), torch.tensor(NEAR)), inputs)
    expected = with_gradients(looped(context, x, LENGTHS, NEAR), inputs)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_dropout_is_for_what_the_sentences_say():
    module = randomised(SentenceContext(WIDTH, INNER, dropout=1.0)).train()
    x = states()
    found = module(x, torch.tensor(LENGTHS), torch.tensor(NEAR))
    assert (found.abs() < x.abs()).all() and (found * x > 0).all()  # g ⊙ h alone is left


def test_neighbours_are_in_the_document_and_the_nearest_come_first():
    found = nearby_sentences(numpy.array([3, 3, 3, 3, 8]), window=2)
    assert found.tolist() == [
        [0, 1, 2, -1, -1],
        [1, 0, 2, 3, -1],
        [2, 1, 3, 0, -1],
        [3, 2, 1, -1, -1],
        [4, -1, -1, -1, -1],
    ]


def test_memory_depends_on_the_longest_document_and_not_on_the_window():
    found = nearby_sentences(numpy.array([0, 0, 0, 1]), window=10**12)
    assert found.tolist() == [
        *([0, 1, 2, -1, -1], [1, 0, 2, -1, -1], [2, 1, 0, -1, -1]),
        [3, -1, -1, -1, -1],
    ]


def test_without_a_window_a_sentence_sees_itself():
    assert nearby_sentences(numpy.array([0, 0, 1]), window=0).tolist() == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width is 0"),
        ({"scoring": "sum"}, "scoring is 'sum'"),
        ({"dropout": 1.5}, "dropout is 1.5"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        SentenceContext(WIDTH, **settings)
