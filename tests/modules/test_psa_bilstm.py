"""The PSA encoder: its slots, the systems of the paper's tables, and what can be seen inside."""

import itertools

import pytest
import torch
from torch import nn

from spacy_psa.modules.chain_potentials import Emission, LabelPair
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.psa import ContextFusion, PSABiLSTM
from spacy_psa.modules.sinusoids import SinusoidalPositions
from spacy_psa.ragged import pad
from spacy_psa.structs.chain import LinearChain
from tests.helpers.modules import randomised
from tests.helpers.ragged import batch

WIDTH, HIDDEN = 4, 3
LENGTHS = (3, 1, 5)
KINDS = ("attention", "bilstm", "none")
SAN, LSTM, NONE = KINDS


def encoder(**options):
    return randomised(PSABiLSTM(WIDTH, HIDDEN, **options))


def kinds(module):
    names = {ContextFusion: SAN, BiLSTM: LSTM}
    return tuple(names[type(slot)] for slot in module.slots)


# Slots


def test_the_default_is_the_papers_order_of_layers():
    module = PSABiLSTM(230)
    assert kinds(module) == (SAN, LSTM, SAN)
    first, middle, second = module.slots
    assert first.inner.in_features == 230
    assert middle.layers[0].hidden_size == 300
    assert second.inner.in_features == module.output_width == 600
    assert module.positions is None
    assert {slot.attention.window for slot in (first, second)} == {10}


def test_the_default_dropouts_are_the_papers():
    first, middle, second = PSABiLSTM(WIDTH, HIDDEN).slots
    assert (middle.input_dropout.p, middle.output_dropout.p) == (0.55, 0.55)
    assert (first.dropout.p, second.dropout.p) == (0.2, 0.2)


@pytest.mark.parametrize("slots", list(itertools.product(KINDS, repeat=3)), ids="-".join)
def test_any_choice_of_slots_runs_and_learns(slots):
    module = encoder(**dict(zip(("bottom", "middle", "top"), slots)))
    assert kinds(module) == tuple(slot for slot in slots if slot != NONE)
    assert module.output_width == (2 * HIDDEN if LSTM in slots else WIDTH)
    x, n = batch(LENGTHS, WIDTH)
    x.requires_grad_()
    output = module(x, n)
    assert output.shape == (9, module.output_width)
    assert output.isfinite().all()
    gradients = torch.autograd.grad((output**2).sum(), [x, *module.parameters()])
    assert gradients[0].any()
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("version", ["journal", "arxiv"])
def test_forward_is_the_slots_one_after_the_other(version):
    module = encoder(version=version)
    x, n = batch(LENGTHS, WIDTH)
    first, middle, second = module.slots
    torch.testing.assert_close(module(x, n), second(middle(first(x, n), n), n))


def test_no_slots_at_all_change_nothing():
    x, n = batch(LENGTHS, WIDTH)
    assert torch.equal(encoder(bottom=NONE, middle=NONE, top=NONE)(x, n), x)


def test_dropout_is_active_in_training_only():
    module = encoder()
    x, n = batch(LENGTHS, WIDTH)
    assert torch.equal(module(x, n), module(x, n))
    module.train()
    assert not torch.equal(module(x, n), module(x, n))


# Positions (Wei2020 Table 6)


def test_absolute_positions_are_added_before_the_first_slot():
    x, n = batch(LENGTHS, WIDTH)
    absolute, none = encoder(position="absolute"), encoder(position="none")
    encoded = SinusoidalPositions(WIDTH)(x, n)
    torch.testing.assert_close(absolute(x, n), none(encoded, n))
    assert not torch.allclose(absolute(x, n), none(x, n))


def test_absolute_positions_reach_what_is_seen_inside():
    x, n = batch(LENGTHS, WIDTH)
    encoded = SinusoidalPositions(WIDTH)(x, n)
    seen, expected = (
        encoder(position=position).inspect(inputs, n)
        for position, inputs in (("absolute", x), ("none", encoded))
    )
    for ours, theirs in zip(seen, expected, strict=True):
        torch.testing.assert_close(ours.attention, theirs.attention)
        torch.testing.assert_close(ours.gate, theirs.gate)


def test_without_positions_attention_does_not_see_the_order_of_tokens():
    x, n = batch((5,), WIDTH)
    order = torch.tensor([3, 0, 4, 1, 2])
    slots = {"bottom": SAN, "middle": NONE, "top": SAN}
    for position, blind in (("none", True), ("absolute", False), ("psa", False)):
        module = encoder(position=position, **slots)
        same = torch.allclose(module(x[order], n), module(x, n)[order])
        assert same == blind, position


# The systems of the paper's tables: what each has in it, and that it makes a tagger

PARTS = {
    "distances": "token bias",
    "global_score": "token bias",
    "global_bias": "token bias",
    "mix": "weights",
}
PSI = {"token bias", "weights", "mask", "gaussian"}

# name: (options, decoder, kinds of slots, parts of Psi)
SYSTEMS = {
    "table 6: without psi": ({"position": "none"}, LabelPair, (SAN, LSTM, SAN), set()),
    "table 6: absolute positions": (
        {"position": "absolute"},
        LabelPair,
        (SAN, LSTM, SAN),
        {"sinusoids"},
    ),
    "table 6: full": ({"position": "psa"}, LabelPair, (SAN, LSTM, SAN), PSI),
    "table 7: no mask": ({"use_mask": False}, LabelPair, (SAN, LSTM, SAN), PSI - {"mask"}),
    "table 7: no token bias": (
        {"use_token_bias": False},
        LabelPair,
        (SAN, LSTM, SAN),
        PSI - {"token bias"},
    ),
    "table 7: no gaussian": (
        {"use_gaussian": False},
        LabelPair,
        (SAN, LSTM, SAN),
        PSI - {"gaussian"},
    ),
    "table 7: all": ({}, LabelPair, (SAN, LSTM, SAN), PSI),
    "table 8: no fusion layer": ({"bottom": NONE, "top": NONE}, LabelPair, (LSTM,), set()),
    "table 8: second only": ({"bottom": NONE}, LabelPair, (LSTM, SAN), PSI),
    "table 8: first only": ({"top": NONE}, LabelPair, (SAN, LSTM), PSI),
    "table 8: both": ({}, LabelPair, (SAN, LSTM, SAN), PSI),
    "table 9: SAN-SAN-SAN-CRF": ({"middle": SAN}, LabelPair, (SAN, SAN, SAN), PSI),
    "table 9: BiLSTM-BiLSTM-SAN-CRF": ({"bottom": LSTM}, LabelPair, (LSTM, LSTM, SAN), PSI),
    "table 9: SAN-BiLSTM-BiLSTM-CRF": ({"top": LSTM}, LabelPair, (SAN, LSTM, LSTM), PSI),
    "table 9: SAN-BiLSTM-SAN-CRF": ({}, LabelPair, (SAN, LSTM, SAN), PSI),
    "table 9: SAN-BiLSTM-SAN-Softmax": ({}, Emission, (SAN, LSTM, SAN), PSI),
}


def parts_of(module):
    """The parts of the positional bias that a module holds, as its behaviour shows them."""
    found = set()
    if module.positions is not None:
        found.add("sinusoids")
    for slot in module.slots:
        if isinstance(slot, ContextFusion):
            attention = slot.attention
            found |= {PARTS[name] for name, _ in attention.named_parameters() if name in PARTS}
            x = torch.ones(4, slot.inner.in_features, dtype=torch.float64)
            weights = attention.weights(x, torch.tensor([4]))[0]
            if not weights.diagonal().any():
                found.add("mask")
            # Equal tokens differ by their distance alone. Without P that leaves G.
            if attention.token_bias:
                nn.init.zeros_(attention.distances)
                weights = attention.weights(x, torch.tensor([4]))[0]
            if not torch.allclose(weights[0, 2], weights[0, 3]):
                found.add("gaussian")
    return found


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_of_the_tables_can_be_built(system):
    options, decoder, slots, parts = SYSTEMS[system]
    module = encoder(**options)
    head = decoder(module.output_width, 3).double()
    x, n = batch(LENGTHS, WIDTH)
    scores = head(module(x, n), n)
    if decoder is Emission:
        chain = LinearChain.from_emissions(pad(scores, n), n)
    else:
        chain = LinearChain(pad(scores.view(-1, 3, 3), n), n)
    assert (chain.log_prob(chain.argmax) < 0).all()
    assert kinds(module) == slots
    assert parts_of(module) == parts


@pytest.mark.parametrize(("version", "rows"), [("journal", 11), ("arxiv", 21)])
def test_both_versions_of_the_paper_are_there(version, rows):
    module = encoder(version=version)
    for slot in (module.slots[0], module.slots[2]):
        assert len(slot.attention.distances) == rows


# Attention and gates


@pytest.mark.parametrize("version", ["journal", "arxiv"])
def test_attention_and_gates_can_be_seen(version):
    module = encoder(version=version)
    x, n = batch(LENGTHS, WIDTH)
    seen = module.inspect(x, n)
    assert [fusion.gate.shape for fusion in seen] == [(9, WIDTH), (9, 2 * HIDDEN)]
    for attention, gate in seen:
        assert attention.shape == (3, 5, 5)
        for weights, length in zip(attention, LENGTHS, strict=True):
            # A token that is alone has nothing to look at.
            total = torch.zeros(5, dtype=torch.float64)
            total[:length] = float(length > 1)
            torch.testing.assert_close(weights.sum(1), total)
            assert not weights.diagonal().any()
            assert not weights[:, length:].any()
        assert ((gate > 0) & (gate < 1)).all()


def test_what_is_seen_is_what_the_layers_do():
    module = encoder()
    x, n = batch(LENGTHS, WIDTH)
    first, middle, second = module.slots
    seen = module.inspect(x, n)
    below = middle(first(x, n), n)
    for fusion, slot, inputs in zip(seen, (first, second), (x, below), strict=True):
        torch.testing.assert_close(fusion.attention, slot.attention.weights(inputs, n))
        torch.testing.assert_close(fusion.gate, slot.inspect(inputs, n).gate)


def test_a_bilstm_alone_has_no_attention_to_see():
    x, n = batch(LENGTHS, WIDTH)
    assert encoder(bottom=NONE, top=NONE).inspect(x, n) == []


@pytest.mark.parametrize("bottom", KINDS)
def test_input_dropout_falls_on_the_first_slots_input_in_training(bottom):
    module = encoder(
        bottom=bottom, input_dropout=0.5, lstm_input_dropout=0.0, attention_dropout=0.0
    )
    x, lengths = batch(LENGTHS, WIDTH)
    seen = []
    module.slots[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    module(x, lengths)
    assert torch.equal(seen[0], x)
    module.train()
    module(x, lengths)
    dropped = seen[1] == 0
    assert 0 < dropped.sum() < dropped.numel()
    torch.testing.assert_close(seen[1][~dropped], 2 * x[~dropped])
