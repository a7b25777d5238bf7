"""The table of trained word vectors."""

import torch
from torch import nn

from spacy_psa.modules.word_table import WordTable


def trained(table, rows, steps=5):
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        ((table(torch.tensor(rows), torch.ones(len(rows), 4)) - 3) ** 2).sum().backward()
        optimizer.step()
    return table.table.weight.detach()


def test_a_word_table_adds_to_the_pretrained_vectors():
    table = WordTable(6, 4)
    pretrained = torch.randn(3, 4)
    assert torch.equal(table(torch.tensor([5, 0, 2]), pretrained), pretrained)
    nn.init.normal_(table.table.weight)
    expected = table.table.weight[[5, 0, 2]] + pretrained
    assert torch.equal(table(torch.tensor([5, 0, 2]), pretrained), expected)


def test_rows_that_training_never_meets_stay_zero():
    weights = trained(WordTable(6, 4), [1, 2, 2, 5])
    assert not weights[[0, 3, 4]].any()
    assert (weights[[1, 2, 5]] != 0).all()


def test_the_unknown_words_row_learns_where_unknown_words_occur():
    assert trained(WordTable(6, 4), [0, 2])[0].all()
