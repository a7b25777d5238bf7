"""The torch code, which runs on a GPU, does not wait for it: it reads no number of a tensor there.

Lengths are on the CPU, so that what depends on them alone is known without waiting.
"""

from functools import partial

import pytest
import torch

from spacy_psa.modules import psa, span_scores
from spacy_psa.modules.chain_potentials import Emission, EmissionTransition, LabelPair
from spacy_psa.modules.characters import CharAdaTrans, CharBiLSTM, CharCNN, CharTransformer
from spacy_psa.modules.documents import SentenceContext
from spacy_psa.modules.factored_transformer import FactoredTransformer
from spacy_psa.modules.idcnn import IDCNN
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.psa import PSABiLSTM
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM
from spacy_psa.modules.span_scores import SpanScores, TagScores
from spacy_psa.modules.tener import TENER
from spacy_psa.modules.transformer import PSATransformer, Transformer
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.tree import SpanTree
from tests.helpers.waiting import waits

LENGTHS = torch.tensor([40, 3])
ROWS = int(LENGTHS.sum())


@pytest.fixture(autouse=True)
def torch_path(monkeypatch):
    monkeypatch.setenv("SPACY_PSA_KERNELS", "0")
    for module in (psa, span_scores):
        monkeypatch.setattr(module, "available", lambda: False)
    monkeypatch.setattr("spacy_psa.structs.chain.kernels.available", lambda: False)


def used(module, *inputs, after=()):
    """What waits in a training step and in annotation."""

    def use():
        module.train()(*inputs, LENGTHS, *after).sum().backward()
        with torch.no_grad():
            module.eval()(*inputs, LENGTHS, *after)

    return waits(use, *inputs, *module.parameters(), *module.buffers())


def test_reading_a_number_is_seen():
    x = torch.arange(3.0)
    assert (
        waits(lambda: [float(x[i]) for i in range(3)], x)
        == ["aten._local_scalar_dense.default"] * 3
    )
    assert len(waits(lambda: (x * 2)[x > 1], x)) == 1
    assert waits(lambda: [x.mul(2).tolist(), LENGTHS.tolist()], x) == ["tolist"]
    assert waits(lambda: [LENGTHS.to(x.device), LENGTHS.to(x), x.to(x.device)], x) == ["to", "to"]
    assert waits(lambda: x.new_tensor([1.0]), x) == ["new_tensor"]


@pytest.mark.parametrize(
    "make",
    [
        BiLSTM,
        partial(SelfAttentiveBiLSTM, hidden=10),
        partial(TENER, heads=2, head_width=8, key_relative_bias=True),
        partial(Transformer, heads=2, head_width=8),
        partial(PSATransformer, heads=2, head_width=8, ffn_dim=8),
        partial(IDCNN, filters=8),
        partial(FactoredTransformer, width=16, heads=2, head_width=4, layers=2, ffn_dim=16),
        partial(
            FactoredTransformer, width=16, heads=2, head_width=4, layers=1, ffn_dim=16,
            window=2, boundaries=True,
        ),
        partial(SpanScores, labels=5, hidden=8),
        partial(TagScores, labels=5, hidden=8, boundaries=True),
        partial(LabelPair, labels=5),
        partial(EmissionTransition, labels=5),
        partial(Emission, labels=5),
    ],
)  # fmt: skip
def test_an_encoder_or_a_head_does_not_wait(make):
    assert used(make(16), torch.randn(ROWS, 16)) == []


def test_the_context_of_sentences_does_not_wait():
    near = torch.tensor([[0, 1], [1, 0]])
    assert used(SentenceContext(10), torch.randn(ROWS, 10), after=[near]) == []


@pytest.mark.parametrize("make", [CharBiLSTM, CharCNN, CharTransformer, CharAdaTrans])
def test_a_character_encoder_does_not_wait(make):
    assert used(make(10), torch.randint(0, 10, (ROWS,))) == []


def test_psa_waits_once_for_how_far_attention_reaches():
    module = PSABiLSTM(16, hidden=8)
    told = used(module, torch.randn(ROWS, 16))
    passes, layers = 2, 2
    assert told == ["tolist"] * passes * layers


@pytest.mark.parametrize("asked", ["log_partition", "argmax", "marginals", "entropy"])
def test_a_chain_does_not_wait_at_its_steps(asked):
    counts = []
    for longest in (3, 40):
        potentials, lengths = torch.randn(2, longest, 4, 4), torch.tensor([longest, 2])
        seen = waits(lambda: getattr(LinearChain(potentials, lengths), asked), potentials)  # noqa: B023
        counts.append(len(seen))
    # Only the best analysis is read at the end, to find sentences that have none.
    assert counts == ([2, 2] if asked == "argmax" else [0, 0])


@pytest.mark.parametrize("compiled", [True, False], ids=["kernel", "torch"])
@pytest.mark.parametrize("asked", ["log_partition", "span_marginals", "entropy"])
def test_a_tree_does_not_wait_at_its_widths(asked, compiled, monkeypatch):
    monkeypatch.setattr("spacy_psa.structs.tree.kernels.available", lambda: compiled)
    counts = []
    for longest in (3, 20):
        lengths = torch.tensor([longest, 2])
        flat = torch.randn(longest * (longest + 1) // 2 + 3, 4)
        seen = waits(lambda: getattr(SpanTree.from_spans(flat, lengths), asked), flat)  # noqa: B023
        counts.append(len(seen))
    # The kernel works on the CPU: two tensors, a number of each span, are copied and read there.
    assert counts == ([4, 4] if compiled else [0, 0])
