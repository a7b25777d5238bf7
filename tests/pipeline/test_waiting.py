"""A training step on a GPU waits for its loss alone; here what it computes there is followed."""

import pytest
import torch

from spacy_psa.bridge import layers, shim
from spacy_psa.bridge.optimizer import torch_modules
from spacy_psa.modules import psa, span_scores
from spacy_psa.structs.emission_chain import EmissionChain
from tests.helpers.parsers import chart_model, make_parser, tree_examples
from tests.helpers.pipelines import make_examples, make_nlp, small_encoder, small_model
from tests.helpers.waiting import Reading, Waiting

LOSS = "aten._local_scalar_dense.default"


@pytest.fixture(autouse=True)
def torch_path(monkeypatch):
    monkeypatch.setenv("SPACY_PSA_KERNELS", "0")
    for module in (psa, span_scores):
        monkeypatch.setattr(module, "available", lambda: False)
    for name in ("chain", "tree"):
        monkeypatch.setattr(f"spacy_psa.structs.{name}.kernels.available", lambda: False)
    # As on a GPU.
    monkeypatch.setattr(EmissionChain, "_sums_apply", False)


def recognizer(encoder, potentials):
    nlp = make_nlp(small_model(potentials, small_encoder(encoder)), max_grad_norm=0.0)
    return nlp, make_examples(nlp)


def parser():
    nlp = make_parser(chart_model("BiLSTM"), loss="log_likelihood", max_grad_norm=0.0)
    return nlp, tree_examples(nlp)


@pytest.mark.parametrize("encoder", ["BiLSTM", "PSABiLSTM"])  # for PSA, sentences are short
@pytest.mark.parametrize("potentials", ["label_pair", "transition"])
def test_a_recognizer_waits_for_its_loss(encoder, potentials, monkeypatch):
    assert waits_of_a_step(*recognizer(encoder, potentials), monkeypatch) == [LOSS]


def test_a_parser_waits_for_its_loss(monkeypatch):
    assert waits_of_a_step(*parser(), monkeypatch) == [LOSS]


def waits_of_a_step(nlp, examples, monkeypatch):
    optimizer = nlp.initialize(lambda: examples)
    nlp.update(examples, sgd=optimizer)
    nodes = [node for _, pipe in nlp.pipeline for node in pipe.model.walk()]
    modules = [module for node in nodes for module in torch_modules(node)]
    waiting = Waiting(*(p for module in modules for p in module.parameters()))

    def to_torch(array, requires_grad=False, device=None):
        """As on a GPU, where nothing is copied, but the tensor is there."""
        tensor = torch.from_numpy(array).requires_grad_(requires_grad)
        waiting.device[tensor] = True
        return tensor

    def to_array(tensor):
        with torch._C.DisableTorchFunction():
            return tensor.detach().numpy()

    for module in (layers, shim):
        monkeypatch.setattr(module, "xp2torch", to_torch)
        monkeypatch.setattr(module, "torch2xp", to_array)
    with Reading(waiting), waiting:
        nlp.update(examples, sgd=False)
    return waiting.seen
