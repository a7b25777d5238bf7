"""Attention from tokens or sentences to others of their document."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_choice, check_rates, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import glorot
from spacy_psa.modules.products import Precision

Scoring = Literal["attention", "mean"]


class DocumentAttention(nn.Module):
    """Holds the layers by which a part of a document reads other parts; a base of modules.

        c_i = Σ_j α_ij V h_j,  α_i = softmax_j(Q h_i · K h_j / √m)

    h are vectors of d numbers, and m is `width`. W, in `project`, leads from c to d numbers again.
    The weights are those of scaled dot-product attention (Vaswani et al. 2017, Eq. 1).

    Args:
        input_width: d, the width of the input and of the output.
        width: m, the width of queries, keys and values.
        scoring: "attention" as above, or "mean": all parts count alike, α_ij is 1 / their number.
        dropout: dropout rate of `dropout`, a layer for the subclass.
        precision: "float32", or "bfloat16" for products with weights in it.

    Raises:
        InputError: for an unknown `scoring` or `precision`, a width below 1, and a rate that is not
            from 0 to 1.

    Examples:
        >>> attention = DocumentAttention(input_width=8, width=4)
        >>> tuple(attention.project(attention.value(torch.zeros(3, 8))).shape)
        (3, 8)
    """

    def __init__(
        self,
        input_width: int,
        width: int = 128,
        scoring: Scoring = "attention",
        dropout: float = 0.3,
        precision: Precision = "float32",
    ):
        super().__init__()
        check_sizes(input_width=input_width, width=width)
        check_choice("scoring", scoring, Scoring)
        check_choice("precision", precision, Precision)
        check_rates(dropout=dropout)
        self.scoring: Scoring = scoring
        self.precision: Precision = precision
        self.query = glorot(nn.Linear(input_width, width))
        self.key = glorot(nn.Linear(input_width, width))
        self.value = glorot(nn.Linear(input_width, width))
        self.project = glorot(nn.Linear(width, input_width))
        self.dropout = Dropout(dropout)
        self.output_width = input_width

    def read(self, query: Tensor, key: Tensor, value: Tensor, others: Tensor) -> Tensor:
        """Sum the values of some rows for each query, by the weights of their keys.

        Args:
            query: (R, m).
            key: (S, m).
            value: (S, m).
            others: (R, k) int64, rows of `key`; -1 for none. Each query has at least one.

        Returns:
            (R, m).

        Examples:
            >>> value = torch.tensor([[2.0], [4.0], [9.0]])
            >>> others = torch.tensor([[0, 1], [2, -1]])
            >>> DocumentAttention(8, width=1).read(torch.zeros(2, 1), value, value, others)
            tensor([[3.],
                    [9.]])
        """
        missing = others < 0
        if self.scoring == "mean":
            weights = (~missing).to(query) / (~missing).sum(1, keepdim=True)
        else:
            scores = torch.bmm(key[others.clamp(min=0)], query[..., None])[..., 0]
            scores = scores / math.sqrt(query.shape[1])
            weights = torch.softmax(scores.masked_fill(missing, -torch.inf), 1)
        return torch.bmm(weights[:, None], value[others.clamp(min=0)])[:, 0]
