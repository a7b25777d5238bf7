"""The gradients of all components of a pipeline are clipped together."""

import pytest
import torch
from thinc.api import Optimizer

from spacy_psa.errors import InputError
from spacy_psa.training.clipping import joint_clipping
from tests.helpers.parsers import chart_model, make_listening_parser, tree_examples


class Measured(Optimizer):
    """Notes the squares of all gradients that it gets, and changes no weights."""

    def __init__(self):
        super().__init__(0.0)
        self.squares = {}

    def __call__(self, key, weights, gradient, *, lr_scale=1.0):
        self.squares[key] = float((gradient**2).sum())
        return weights, gradient * 0

    @property
    def norm(self):
        return sum(self.squares.values()) ** 0.5


@pytest.fixture
def pipeline():
    """A parser that listens to a tok2vec, and its examples."""
    nlp = make_listening_parser(chart_model(), max_grad_norm=0.0)
    examples = list(tree_examples(nlp))
    torch.manual_seed(0)
    nlp.initialize(lambda: examples)
    return nlp, examples


def step(nlp, examples):
    """Make a step as spaCy's loop does; the norm of the gradients with which weights change."""
    measured = Measured()
    torch.manual_seed(0)  # of dropout
    nlp.update(examples, sgd=False)
    for _, pipe in nlp.pipeline:
        pipe.finish_update(measured)
    assert measured.squares
    return measured.norm


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_the_joint_norm_of_all_components_is_limited(pipeline, share):
    nlp, examples = pipeline
    whole = step(nlp, examples)
    clip = joint_clipping(share * whole)
    for _ in range(2):  # each step anew
        clip(nlp, {"step": 0, "epoch": 0})
        assert step(nlp, examples) == pytest.approx(min(1.0, share) * whole, rel=1e-4)
    assert step(nlp, examples) == pytest.approx(whole, rel=1e-4)  # without a call, nothing is left
    assert not any("finish_update" in vars(pipe) for _, pipe in nlp.pipeline)


def test_a_step_that_is_left_out_is_no_hindrance(pipeline):
    nlp, examples = pipeline
    whole = step(nlp, examples)
    clip = joint_clipping(0.5 * whole)
    for n in range(3):
        clip(nlp, {"step": n, "epoch": 0})
    assert step(nlp, examples) == pytest.approx(0.5 * whole, rel=1e-4)


def test_a_limit_below_0_is_an_error():
    with pytest.raises(InputError, match=r"max_norm is -1\.0"):
        joint_clipping(-1.0)
