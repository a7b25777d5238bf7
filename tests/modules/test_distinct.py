"""Rows that occur several times are computed on once, with the same result."""

import pytest
import torch

from spacy_psa.modules.products import Distinct

WIDTH = 64


def repeated():
    rows = torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(0))
    return rows[torch.tensor([0, 1, 0, 2, 2, 3, 0, 4, 1, 0, 2, 3])]


def test_equal_rows_are_taken_once_and_spread_again():
    x = repeated()
    with torch.inference_mode():
        once = Distinct(x)
        assert len(once.rows) == 5
        assert torch.equal(once.spread(once.rows), x)


@pytest.mark.parametrize("case", ["training", "few equals", "narrow"])
def test_where_it_would_not_pay_all_rows_are_taken(case):
    x = repeated()
    if case == "few equals":
        x = torch.randn(12, WIDTH)
    elif case == "narrow":
        x = x[:, :8]
    with torch.set_grad_enabled(case == "training"):
        once = Distinct(x)
        assert once.place is None and once.rows is x
