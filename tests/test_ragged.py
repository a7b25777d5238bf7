"""Ragged batches: where each token stands, and padding there and back."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.ragged import mask, pad, positions, to_device, unpad, with_boundaries

batches = st.lists(st.integers(1, 7), min_size=1, max_size=6)


@given(batches)
def test_positions_count_sentences_and_places_from_zero(lengths):
    sentence, place = positions(torch.tensor(lengths))
    expected = [(b, t) for b, n in enumerate(lengths) for t in range(n)]
    assert list(zip(sentence.tolist(), place.tolist(), strict=True)) == expected


@given(batches)
def test_mask_is_true_at_tokens_only(lengths):
    expected = [[t < n for t in range(max(lengths))] for n in lengths]
    assert mask(torch.tensor(lengths)).tolist() == expected


@given(batches, st.lists(st.integers(1, 3), max_size=2), st.floats(-3, 3))
def test_unpad_undoes_pad_and_the_rest_holds_the_fill_value(lengths, shape, value):
    x = torch.randn(sum(lengths), *shape)
    n = torch.tensor(lengths)
    padded = pad(x, n, value)
    assert padded.shape == (len(lengths), max(lengths), *shape)
    assert torch.equal(unpad(padded, n), x)
    assert (padded[~mask(n)] == torch.tensor(value)).all()


def test_padded_tokens_stand_in_their_sentence():
    x = torch.arange(6.0)
    expected = [[0, 1, 2], [3, 0, 0], [4, 5, 0]]
    assert pad(x, torch.tensor([3, 1, 2])).tolist() == expected


def test_pad_keeps_the_type_of_its_input():
    lengths = torch.tensor([1, 2])
    assert pad(torch.ones(3, dtype=torch.float64), lengths).dtype == torch.float64
    assert pad(torch.ones(3, dtype=torch.bool), lengths).dtype == torch.bool


def test_gradients_pass_through_padding():
    lengths = torch.tensor([2, 1, 3])
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(6, 2, dtype=torch.float64)
    (unpad(pad(x, lengths) * 3, lengths) * weights).sum().backward()
    torch.testing.assert_close(x.grad, 3 * weights)


def test_boundary_rows_stand_around_each_sentence():
    assert with_boundaries(torch.tensor([2, 1])).tolist() == [3, 0, 1, 4, 3, 2, 4]


def test_on_the_cpu_nothing_is_moved():
    x = torch.arange(3)
    assert to_device(x, torch.device("cpu")) is x and to_device(x, None) is x


def test_what_goes_to_a_gpu_is_pinned_first_and_not_waited_for(monkeypatch):
    calls = []

    def pin(x):
        calls.append("pinned")
        return x

    def to(x, device, **settings):
        calls.append((device, settings))
        return x

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", to)
    there = torch.device("cuda", 0)
    to_device(torch.arange(3), there)
    assert calls == ["pinned", (there, {"non_blocking": True})]
    to_device(torch.arange(3, device="meta"), there)  # not in the memory of the CPU
    assert calls[2:] == [(there, {})]
