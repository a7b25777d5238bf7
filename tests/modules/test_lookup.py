"""Trained vectors of words and of symbols."""

import torch

from spacy_psa.modules.lookup import Lookup, WordTable


def test_only_the_rows_of_words_that_training_meets_leave_zero():
    table = WordTable(6, 4)
    assert not table(torch.arange(6)).any()
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
    (table(torch.tensor([0, 2, 2, 5])) - 3).square().sum().backward()
    optimizer.step()
    assert table(torch.tensor([0, 2, 5])).all() and not table(torch.tensor([1, 3, 4])).any()
    assert list(table.state_dict()) == ["table.weight"]


def test_vectors_of_symbols_lie_side_by_side():
    torch.manual_seed(0)
    module = Lookup(num_embeddings=5, width=2, symbols=3)
    weight = module.embed.weight
    got = module(torch.tensor([[4, 0, 1], [2, 2, 2]]))
    assert torch.equal(got[0], torch.cat([weight[4], weight[0], weight[1]]))
    assert got.shape == (2, module.output_width) == (2, 6)


def test_dropout_is_for_training_only():
    module = Lookup(num_embeddings=5, width=2, dropout=1.0)
    rows = torch.tensor([[1], [2]])
    assert not module(rows).any()
    assert torch.equal(module.eval()(rows), module.embed.weight[[1, 2]])
