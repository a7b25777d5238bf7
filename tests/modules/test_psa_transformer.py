"""The Transformer with PSA's position bias, and that bias by itself."""

import itertools
import math

import pytest
import torch
from torch import nn

from spacy_psa.errors import InputError
from spacy_psa.modules import transformer
from spacy_psa.modules.position_bias import PositionBias
from spacy_psa.modules.psa import PositionAwareAttention
from spacy_psa.modules.psa_transformer import PSATransformer
from spacy_psa.modules.sinusoids import SinusoidalPositions
from spacy_psa.modules.transformer import MultiHeadAttention
from spacy_psa.ragged import mask

WIDTH, HEADS = 6, 2
LENGTHS = torch.tensor([3, 1, 5])
PARTS = ("use_mask", "use_token_bias", "use_gaussian")
CHOICES = [
    {"version": version, **dict(zip(PARTS, on))}
    for version in ("journal", "arxiv")
    for on in itertools.product([False, True], repeat=3)
]


def batch(width=WIDTH, lengths=LENGTHS):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(int(lengths.sum()), width, generator=generator, dtype=torch.float64)


def randomised(module, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return module.double().eval()


@torch.no_grad()
def attend_loop(attention, x, psi):
    """softmax_j(q_i·k_j / sqrt(dk) + Ψ_ij) v_j, one sentence (n, d), pair by pair."""
    n, d = x.shape
    dk = d // attention.heads
    q, k, v = attention.query(x), attention.key(x), attention.value(x)
    out = torch.zeros(n, d, dtype=x.dtype)
    for h, i in itertools.product(range(attention.heads), range(n)):
        part = slice(h * dk, (h + 1) * dk)
        scores = {
            j: float(q[i, part] @ k[j, part]) / math.sqrt(dk) + float(psi[i, j])
            for j in range(n)
            if psi[i, j] != -math.inf
        }
        total = sum(math.exp(s) for s in scores.values())
        for j, score in scores.items():
            out[i, part] += math.exp(score) / total * v[j, part]
    return attention.output(out)


@pytest.mark.parametrize("options", CHOICES, ids=str)
@pytest.mark.parametrize("chunk", [1 << 30, 1], ids=["whole", "row by row"])
def test_psi_is_added_to_the_scaled_scores_of_every_head(monkeypatch, options, chunk):
    monkeypatch.setattr(transformer, "CHUNK_BYTES", chunk)
    bias = PositionBias(WIDTH, window=2, **options)
    attention = randomised(MultiHeadAttention(WIDTH, HEADS, psi=bias))
    x = batch()
    psi = bias.psi(x, LENGTHS)
    sentences = x.split(LENGTHS.tolist())
    expected = torch.cat([attend_loop(attention, part, psi[b]) for b, part in enumerate(sentences)])
    torch.testing.assert_close(attention(x, LENGTHS), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_psi_is_that_of_position_aware_attention(options):
    """With w = 0 its scores are Ψ alone, so the logarithms of its weights differ as Ψ does."""
    attention = randomised(PositionAwareAttention(WIDTH, window=2, **options))
    with torch.no_grad():
        attention.score.zero_()
    bias = PositionBias(WIDTH, window=2, **options).double()
    bias.load_state_dict({name: attention.state_dict()[name] for name in bias.state_dict()})
    x = batch()
    psi = bias.psi(x, LENGTHS).masked_fill(~mask(LENGTHS)[:, None], -torch.inf)
    weights = torch.softmax(psi, 2).nan_to_num().masked_fill(~mask(LENGTHS)[..., None], 0)
    torch.testing.assert_close(attention.weights(x, LENGTHS), weights, rtol=0, atol=1e-10)


def test_position_aware_attention_keeps_the_names_of_its_parameters():
    """Of weights that are saved."""
    journal = {name: tuple(p.shape) for name, p in PositionAwareAttention(4).named_parameters()}
    assert journal == {
        "query.weight": (4, 4),
        "query.bias": (4,),
        "key.weight": (4, 4),
        "score": (4,),
        "distances": (11, 4),
        "global_score": (4,),
        "global_bias": (),
        "mix": (),
    }
    arxiv = {name for name, _ in PositionAwareAttention(4, version="arxiv").named_parameters()}
    assert arxiv == {*journal} - {"global_score", "global_bias"}


def test_a_part_that_is_left_out_has_no_parameters():
    assert not [*PositionBias(4, use_psi=False).parameters()]
    assert {*PositionBias(4, use_token_bias=False).state_dict()} == {"mix"}


def encoder(**options):
    sizes = {"heads": HEADS, "head_width": 3, "layers": 2, "feedforward": 8, "window": 2}
    return randomised(PSATransformer(4, **{**sizes, **options}))


def test_each_layer_has_a_psi_that_reads_its_own_input():
    module = encoder()
    x = batch(4)
    h = module.project(x)
    for layer in module.layers:
        psi = layer.attention.psi.psi(h, LENGTHS)
        parts = h.split(LENGTHS.tolist())
        attended = torch.cat(
            [attend_loop(layer.attention, part, psi[b]) for b, part in enumerate(parts)]
        )
        y = layer.attention_norm(h + attended)
        h = layer.feedforward_norm(y + layer.outer(torch.relu(layer.inner(y))))
    torch.testing.assert_close(module(x, LENGTHS), h, rtol=0, atol=1e-10)
    assert module.layers[0].attention.psi is not module.layers[1].attention.psi


def test_absolute_positions_take_the_place_of_psi():
    sizes = {"heads": HEADS, "head_width": 3, "layers": 2, "feedforward": 8}
    module = randomised(PSATransformer(4, position="absolute", **sizes))
    assert isinstance(module.positions, SinusoidalPositions)
    assert not [name for name, _ in module.named_parameters() if "psi" in name]
    vanilla = transformer.Transformer(4, **sizes).double().eval()
    vanilla.load_state_dict(module.state_dict())
    assert torch.equal(module(batch(4), LENGTHS), vanilla(batch(4), LENGTHS))
    assert encoder().positions is None


def test_the_sizes_of_the_paper_are_the_defaults():
    module = PSATransformer(300, layers=1)
    (layer,) = module.layers
    assert module.output_width == layer.attention.query.out_features == 512
    assert (layer.attention.heads, layer.attention.scale) == (8, 64**-0.5)
    assert layer.inner.out_features == 1024
    assert layer.attention.psi.window == 10


def test_matrices_start_by_glorots_rule_and_biases_at_zero():
    torch.manual_seed(0)
    for module in PSATransformer(30, heads=2, head_width=16, feedforward=64).modules():
        if isinstance(module, nn.Linear):
            bound = math.sqrt(6 / (module.in_features + module.out_features))
            assert 0.9 * bound < module.weight.abs().max() <= bound
            assert not module.bias.any()
        if isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all()


def test_a_sentence_does_not_depend_on_its_batch():
    module = encoder()
    x = batch(4)
    alone = [module(part, torch.tensor([len(part)])) for part in x.split(LENGTHS.tolist())]
    torch.testing.assert_close(module(x, LENGTHS), torch.cat(alone), rtol=0, atol=1e-10)


def test_a_token_alone_has_no_context_under_the_mask():
    attention = randomised(MultiHeadAttention(WIDTH, HEADS, psi=PositionBias(WIDTH)))
    x = batch(lengths=torch.tensor([1])).requires_grad_()
    out = attention(x, torch.tensor([1]))
    torch.testing.assert_close(out, attention.output.bias[None])
    out.sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("version", ["journal", "arxiv"])
def test_gradients_are_right(version):
    lengths = torch.tensor([3, 1, 2])
    module = randomised(MultiHeadAttention(4, 2, psi=PositionBias(4, window=2, version=version)))
    names = [name for name, _ in module.named_parameters()]

    def run(x, *parameters):
        return torch.func.functional_call(module, dict(zip(names, parameters)), (x, lengths))

    x = batch(4, lengths).requires_grad_()
    assert torch.autograd.gradcheck(run, (x, *module.parameters()), fast_mode=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"position": "relative"}, "position is 'relative'"),
        ({"version": "v3"}, "version must be"),
        ({"window": 0}, "window must be at least 1"),
    ],
)
def test_unknown_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        PSATransformer(4, heads=2, head_width=3, **options)
