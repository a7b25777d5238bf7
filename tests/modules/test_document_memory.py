"""Document memory against a plain double loop."""

import pytest
import torch

from spacy_psa.errors import InputError
from spacy_psa.kernels import available
from spacy_psa.modules import document_memory
from spacy_psa.modules.document_memory import DocumentMemory
from tests.helpers.documents import linear, read_one_by_one
from tests.helpers.modules import randomised, with_gradients

WIDTH, INNER = 6, 4
OCCURRENCES = [[2, 5, -1], [-1, -1, -1], [0, 5, -1], [4, -1, -1], [3, -1, -1], [2, 0, -1]]
ONE_WAY = [[5, -1, -1], [-1, -1, -1], [0, 5, -1], [-1, -1, -1], [3, -1, -1], [0, -1, -1]]
"""Tokens 2 and 4 are read by none, and token 3 reads none."""


def looped(module, x, occurrences):
    """The formulas of the module, token by token."""
    rows = []
    for h, others in zip(x, occurrences, strict=True):
        others = [j for j in others if j >= 0]
        if not others:
            rows.append(h)
            continue
        query = linear(module.query, h)
        found = read_one_by_one(module, query, [x[j] for j in others])
        added = torch.tanh(linear(module.project, found))
        gate = torch.sigmoid(linear(module.gate, torch.cat([query, found])))
        rows.append(gate * h + (1 - gate) * added)
    return torch.stack(rows)


@pytest.fixture(params=["attention", "mean"])
def memory(request):
    return randomised(DocumentMemory(WIDTH, INNER, scoring=request.param, dropout=0.0))


def states():
    torch.manual_seed(1)
    return torch.randn(len(OCCURRENCES), WIDTH, dtype=torch.float64)


@pytest.fixture(params=["both ways", "one way"])
def occurrences(request):
    return OCCURRENCES if request.param == "both ways" else ONE_WAY


def test_the_output_is_that_of_a_double_loop(memory, occurrences):
    x = states()
    found = memory(x, torch.tensor(occurrences))
    torch.testing.assert_close(found, looped(memory, x, occurrences))


@pytest.mark.skipif(not available(), reason="numba does not work here")
@pytest.mark.parametrize("rows", [2, 1024])
def test_annotation_in_blocks_gives_what_training_does(memory, occurrences, monkeypatch, rows):
    monkeypatch.setattr(document_memory, "BLOCK_ROWS", rows)
    memory.float()
    x, places = states().float(), torch.tensor(occurrences)
    expected = memory(x, places)
    with torch.no_grad():
        before = x.clone()
        torch.testing.assert_close(memory(x, places), expected)
        assert torch.equal(x, before)


def test_gradients_are_those_of_a_double_loop(memory, occurrences):
    x = states().requires_grad_()
    used = [memory.query, memory.value, memory.project, memory.gate]
    used += [memory.key] if memory.scoring == "attention" else []
    inputs = [x, *(parameter for layer in used for parameter in layer.parameters())]
    found = with_gradients(memory(x, torch.tensor(occurrences)), inputs)
    expected = with_gradients(looped(memory, x, occurrences), inputs)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_a_token_without_another_occurrence_keeps_its_state(memory):
    x = states()
    assert torch.equal(memory(x, torch.tensor(OCCURRENCES))[1], x[1])
    assert torch.equal(memory(x, torch.full((6, 3), -1)), x)


def test_dropout_is_for_what_the_others_say():
    module = randomised(DocumentMemory(WIDTH, INNER, dropout=1.0)).train()
    x = states()
    found = module(x, torch.tensor(OCCURRENCES))
    expected = looped(module, x, OCCURRENCES)
    assert torch.equal(found[1], x[1])
    assert not torch.allclose(found, expected)  # g ⊙ h alone is left
    assert (found[0].abs() < x[0].abs()).all()


def test_memory_dropout_leaves_some_tokens_as_they_are_in_training_alone():
    module = randomised(DocumentMemory(WIDTH, INNER, dropout=0.0, memory_dropout=0.5)).train()
    x, places = states(), torch.tensor(OCCURRENCES)
    expected = looped(module, x, OCCURRENCES)
    with_others = [i for i, others in enumerate(OCCURRENCES) if max(others) >= 0]
    kept = {i: set() for i in with_others}
    for _ in range(50):
        found = module(x, places)
        for i in with_others:
            kept[i].add(torch.equal(found[i], x[i]))
            assert torch.equal(found[i], x[i]) or torch.allclose(found[i], expected[i])
    assert all(each == {True, False} for each in kept.values())
    torch.testing.assert_close(module.eval()(x, places), expected)


def test_with_a_memory_dropout_of_one_training_has_no_memory():
    module = randomised(DocumentMemory(WIDTH, INNER, memory_dropout=1.0)).train()
    x = states()
    assert torch.equal(module(x, torch.tensor(OCCURRENCES)), x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width is 0"),
        ({"scoring": "sum"}, "scoring is 'sum'"),
        ({"dropout": 1.5}, "dropout is 1.5"),
        ({"memory_dropout": -0.1}, "memory_dropout is -0.1"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        DocumentMemory(WIDTH, **settings)
