"""Products in bfloat16: near those in float32, with results and gradients in float32."""

import numpy
import pytest
import torch
from torch import nn

from spacy_psa.modules import products
from spacy_psa.modules.chain_potentials import Emission, EmissionTransition, LabelPair
from spacy_psa.modules.documents import (
    DocumentMemory,
    SentenceContext,
    nearby_sentences,
    nearest_occurrences,
)
from spacy_psa.modules.idcnn import IDCNN
from spacy_psa.modules.int8 import quantize
from spacy_psa.modules.lstm import BiLSTM, _by_torch
from spacy_psa.modules.products import (
    ROWS,
    affine,
    filled,
    linears,
    multiplier_of_all,
    multipliers,
)
from spacy_psa.modules.psa import PSABiLSTM
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM

WIDTH = 12
LENGTHS = torch.tensor([5, 1] + 40 * [2])
DRY = {"input_dropout": 0.0, "output_dropout": 0.0}
DRY_PSA = {"lstm_input_dropout": 0.0, "lstm_output_dropout": 0.0, "attention_dropout": 0.0}
MODULES = {
    "BiLSTM": lambda **own: BiLSTM(WIDTH, 8, **DRY, **own),
    "cross": lambda **own: BiLSTM(WIDTH, 8, layers=2, **DRY, **own),
    "separate": lambda **own: BiLSTM(WIDTH, 8, layers=2, separate=True, **DRY, **own),
    "self-attentive": lambda **own: SelfAttentiveBiLSTM(WIDTH, 8, heads=2, **DRY, **own),
    "PSA": lambda **own: PSABiLSTM(WIDTH, 8, window=3, **DRY_PSA, **own),
    "IDCNN": lambda **own: IDCNN(WIDTH, 8, **DRY, **own),
    "memory": lambda **own: Memory(WIDTH, 8, dropout=0.0, **own),
    "context": lambda **own: Context(WIDTH, 8, dropout=0.0, **own),
    "label_pair": lambda **own: LabelPair(WIDTH, 5, **own),
    "transition": lambda **own: EmissionTransition(WIDTH, 5, **own),
    "emission": lambda **own: Emission(WIDTH, 5, **own),
}


class Memory(DocumentMemory):
    """A memory of one document, in which each word occurs six times."""

    def forward(self, x, lengths):
        words = numpy.arange(len(x), dtype=numpy.uint64) % (len(x) // 6)
        places = nearest_occurrences(words, numpy.zeros(len(x), dtype=numpy.int64), 4)
        return super().forward(x, torch.from_numpy(places))


class Context(SentenceContext):
    """The context of the sentences of one document."""

    def forward(self, x, lengths):
        near = nearby_sentences(numpy.zeros(len(lengths), dtype=numpy.int64), 2)
        return super().forward(x, lengths, torch.from_numpy(near))


def near(ours, theirs):
    return (ours - theirs).norm() <= 0.03 * theirs.norm() + 1e-4


def both(name, run):
    """What `run` gives of a module in each precision, with the same weights."""
    found = []
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(0)
        module = MODULES[name](precision=precision)
        x = torch.randn(int(LENGTHS.sum()), WIDTH)
        found.append(run(module, x))
    return found


@pytest.mark.parametrize("name", MODULES)
def test_training_in_bfloat16_changes_digits_and_no_more(name):
    def step(module, x):
        x.requires_grad_()
        y = module(x, LENGTHS)
        y.square().sum().backward()
        return [y.detach(), x.grad, *(p.grad for p in module.parameters())]

    exact, rounded = both(name, step)
    assert not torch.equal(exact[0], rounded[0]) and not torch.equal(exact[1], rounded[1])
    for ours, theirs in zip(rounded, exact, strict=True):
        assert ours.dtype == torch.float32 and near(ours, theirs)


@pytest.mark.parametrize("name", MODULES)
def test_annotation_in_bfloat16_is_that_of_training(name):
    def annotate(module, x):
        trained = module.eval()(x, LENGTHS)
        with torch.no_grad():
            return module(x, LENGTHS), trained.detach()

    (exact, _), (rounded, trained) = both(name, annotate)
    assert rounded.dtype == torch.float32
    assert near(rounded, exact) and not torch.equal(exact, rounded)
    assert near(rounded, trained)


@pytest.mark.parametrize("name", MODULES)
def test_few_tokens_are_multiplied_in_float32(name):
    lengths = torch.tensor([ROWS // 2, ROWS // 2 - 1])

    def annotate(module, x):
        with torch.no_grad():
            return module(x[: ROWS - 1], lengths)

    exact, rounded = both(name, annotate)
    assert torch.equal(exact, rounded)


@pytest.mark.parametrize("asked", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MODULES)
def test_auto_is_the_precision_that_the_processor_has_instructions_for(name, asked, monkeypatch):
    monkeypatch.setattr(products, "fast_precision", lambda device: asked)

    def run(precision):
        torch.manual_seed(0)
        module = MODULES[name](precision=precision)
        x = torch.randn(int(LENGTHS.sum()), WIDTH, requires_grad=True)
        y = module(x, LENGTHS)
        y.square().sum().backward()
        with torch.no_grad():
            return [y, x.grad, module.eval()(x, LENGTHS)]

    for ours, theirs in zip(run("auto"), run(asked), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", ["PSA", "BiLSTM", "IDCNN", "memory"])
def test_int8_layers_are_used_as_they_are(name, monkeypatch):
    monkeypatch.setattr("spacy_psa.modules.int8.LEAST_WORK", 1)

    def annotate(module, x):
        quantize(module)
        with torch.no_grad():
            return module.eval()(x, LENGTHS)

    exact, rounded = both(name, annotate)
    assert torch.equal(exact, rounded)


def test_the_lstm_of_torch_is_near_in_bfloat16():
    """cuDNN computes it on a GPU; here torch's own code does."""
    layer = nn.LSTM(WIDTH, 8, bidirectional=True)
    x, sizes = torch.randn(9, WIDTH), torch.tensor([4, 3, 2])
    exact = _by_torch(layer, x, sizes, "float32")
    rounded = _by_torch(layer, x, sizes, "bfloat16")
    assert rounded.dtype == torch.float32 and not torch.equal(exact, rounded)
    assert near(rounded, exact)
    rounded.sum().backward()
    assert all(weight.grad.dtype == torch.float32 for weight in layer.parameters())


@pytest.mark.parametrize("rows", [1, ROWS - 1, ROWS, ROWS + 1])
@pytest.mark.parametrize("bias", [None, torch.full((4,), 1e-3)])
def test_all_ways_to_multiply_give_the_same(rows, bias):
    x, weight = torch.randn(rows, 3), torch.randn(4, 3)
    found = affine(x, weight, bias, "bfloat16")
    assert torch.equal(linears("bfloat16", x, [weight], [bias])[0](x), found)
    layer = nn.Linear(3, 4, bias=bias is not None)
    layer.weight.data = weight
    if bias is not None:
        layer.bias.data = bias
    with torch.no_grad():
        assert torch.equal(multipliers("bfloat16", x, layer)[0](x), found)
    assert torch.equal(multipliers("bfloat16", x, layer)[0](x), found)
    assert torch.allclose(found, nn.functional.linear(x, weight, bias), atol=0.05)


def test_any_dimensions_before_the_last_are_rows():
    x, weight = torch.randn(5, 8, 3), torch.randn(4, 3)
    found = affine(x, weight, precision="bfloat16")
    assert torch.equal(found.flatten(0, 1), affine(x.flatten(0, 1), weight, precision="bfloat16"))


def test_rows_are_filled_with_zeros():
    found = filled(torch.ones(ROWS + 1, 2))
    assert found.shape == (2 * ROWS, 2) and found.sum() == 2 * (ROWS + 1)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("wrap", [nn.Identity(), nn.Sequential], ids=["linear", "others"])
def test_layers_of_one_input_give_side_by_side_what_each_gives(precision, wrap):
    layers = [wrap(nn.Linear(5, width)) for width in (3, 1, 4)]
    x = torch.randn(40, 5)
    with torch.no_grad():
        found = multiplier_of_all(precision, x, layers)(x)
        expected = torch.cat([layer(x) for layer in multipliers(precision, x, *layers)], 1)
    torch.testing.assert_close(found, expected)
