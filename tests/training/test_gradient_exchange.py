"""The gradients of a step are weighted, and added up over the processes."""

import numpy
import pytest
import torch
from thinc.api import Model
from torch import nn

from spacy_psa.training import gradient_exchange
from spacy_psa.training.gradient_exchange import GradientExchange
from spacy_psa.training.processes import Processes


class Twins(Processes):
    """This process and another one, which has the same gradients."""

    def __init__(self):
        super().__init__(0, 2)
        self.sent = []

    def add(self, tensor):
        self.sent.append(len(tensor))
        return lambda: tensor.mul_(2.0)  # the sum is only there when it is waited for


def gradients(module):
    return [p.grad for p in module.parameters()]


@pytest.fixture
def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


@pytest.mark.parametrize("bucket", [1, 10, 10**6])
@pytest.mark.parametrize("passes", [0, 1, 2])
def test_gradients_are_weighted_sums_in_buckets_of_any_size(monkeypatch, module, bucket, passes):
    monkeypatch.setattr(gradient_exchange, "BUCKET", bucket)
    inputs = torch.randn(5, 3)
    for _ in range(passes):
        module(inputs).sum().backward()
    alone = gradients(module)
    module.zero_grad()
    exchange = GradientExchange(Twins())
    for _ in range(2):  # steps
        exchange.begin({module: 0.25}, {}, {})
        for _ in range(passes):
            module(inputs).sum().backward()
        assert exchange.finish([3.0]) == [6.0]
        for found, wanted in zip(gradients(module), alone, strict=True):
            if passes:
                torch.testing.assert_close(found, wanted * 0.5)
            else:
                assert found is None
        module.zero_grad()


def test_buckets_are_sent_before_the_backward_pass_is_over(monkeypatch, module):
    monkeypatch.setattr(gradient_exchange, "BUCKET", 1)
    processes = Twins()
    exchange = GradientExchange(processes)
    exchange.begin({module: 1.0}, {}, {})
    sent = []
    module[0].weight.register_hook(lambda _: sent.extend(processes.sent))
    module(torch.randn(5, 3)).sum().backward()
    assert sorted(sent) == [2 + 1, 4 + 1, 8 + 1]  # all others, each with its flag
    exchange.finish()
    assert len(processes.sent) == 4 + 1


def test_a_parameter_without_a_gradient_in_any_process_stays_without(module):
    exchange = GradientExchange(Twins())
    exchange.begin({module: 1.0}, {}, {})
    module[0](torch.randn(5, 3)).sum().backward()
    exchange.finish()
    assert [grad is None for grad in gradients(module)] == [False, False, True, True]


def test_of_a_table_only_the_rows_that_are_read_are_sent():
    table = nn.Embedding(1000, 3)
    processes = Twins()
    exchange = GradientExchange(processes)
    exchange.begin({table: 1.0}, {}, {table.weight: torch.tensor([0, 7, 30])})
    table(torch.tensor([7, 7])).sum().backward()
    exchange.finish()
    assert max(processes.sent) == 3 * 3 + 1
    assert table.weight.grad[7].tolist() == [4.0] * 3
    assert float(table.weight.grad.sum()) == 12.0


def test_parameters_of_thinc_are_sent_too():
    node = Model("one", lambda *_: None, params={"w": numpy.ones((2, 2), dtype="f"), "none": None})
    exchange = GradientExchange(Twins())
    exchange.begin({}, {node: 0.5}, {})
    node.inc_grad("w", numpy.full((2, 2), 3.0, dtype="f"))
    exchange.finish()
    assert node.get_grad("w").tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_a_module_that_is_made_anew_is_watched(module):
    exchange = GradientExchange(Twins())
    for layer in (module, nn.Linear(3, 2)):
        exchange.begin({layer: 1.0}, {}, {})
        layer(torch.ones(1, 3)).sum().backward()
        exchange.finish()
    assert layer.bias.grad.tolist() == [2.0, 2.0]
