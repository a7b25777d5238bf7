"""Attention from a sentence to its neighbours in the document, for all of its tokens.

The idea is that of the sentence-level modules of GCDoc and GCDT (see docs/papers.md): a vector that
sums up a sentence and those around it says what a single token cannot see.
"""

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spacy_psa.modules.document_attention import DocumentAttention, Scoring
from spacy_psa.modules.initialization import glorot
from spacy_psa.modules.products import Precision, multiplier
from spacy_psa.ragged import positions

Ints = NDArray[np.int64]


class SentenceContext(DocumentAttention):
    """Adds to each token what its sentence and those around it are about: (N, d) -> (N, d).

        s_i = the mean of h_t over the tokens t of sentence i
        c_i = Σ_j α_ij V s_j,  α_i = softmax_j(Q s_i · K s_j / √m)
        a_i = tanh(W c_i),     g_t = σ(U P h_t + R c_i)
        y_t = g_t ⊙ h_t + (1 - g_t) ⊙ a_i

    j runs over sentence i itself and its neighbours in the document; h are the states of the
    sentence encoder, of d numbers, and m is `width`.

    Args:
        input_width: d, the width of the input and of the output.
        width: m, the width of queries, keys and values, and of what the gate reads of a token.
        scoring: "attention" as above, or "mean": all sentences count alike, α_ij is 1 / their
            number.
        dropout: dropout rate on a_i.
        precision: "float32", or "bfloat16" for products with weights in it.

    Raises:
        InputError: for an unknown `scoring` or `precision`, a width below 1, and a rate that is not
            from 0 to 1.

    Examples:
        >>> context = SentenceContext(input_width=6, width=4)
        >>> near = torch.tensor([[0, 1], [1, 0]])  # two sentences that see each other
        >>> context(torch.randn(5, 6), torch.tensor([2, 3]), near).shape
        torch.Size([5, 6])
    """

    def __init__(
        self,
        input_width: int,
        width: int = 128,
        scoring: Scoring = "attention",
        dropout: float = 0.3,
        precision: Precision = "float32",
    ):
        super().__init__(input_width, width, scoring, dropout, precision)
        self.token = glorot(nn.Linear(input_width, width))
        self.gate_token = glorot(nn.Linear(width, input_width))
        self.gate_context = glorot(nn.Linear(width, input_width, bias=False))

    def forward(self, x: Tensor, lengths: Tensor, near: Tensor) -> Tensor:
        """Mix the states with what the sentences are about.

        Args:
            x: (N, d) the states of the tokens of all sentences.
            lengths: (S,) int64 on the CPU, the tokens of each sentence, at least 1.
            near: (S, k) int64, the numbers of a sentence and of its neighbours, as
                `nearby_sentences` gives them; -1 for none.
        """
        sentence, _ = positions(lengths, x.device)
        sums = x.new_zeros(len(lengths), x.shape[1]).index_add(0, sentence, x)
        means = sums / lengths.to(x.device)[:, None]
        multiply = partial(multiplier, precision=self.precision)
        query, key, value = map(multiply, (self.query, self.key, self.value))
        found = self.read(query(means), key(means), value(means), near.to(x.device))
        project, context = multiply(self.project), multiply(self.gate_context)
        token, gate_of = multiply(self.token), multiply(self.gate_token)
        added = self.dropout(torch.tanh(project(found)))
        gate = torch.sigmoid(gate_of(token(x)) + context(found)[sentence])
        return torch.lerp(added[sentence], x, gate)


def nearby_sentences(documents: Ints, window: int) -> Ints:
    """List each sentence and those around it in its document, the nearest first.

    Args:
        documents: (S,) the number of the document of each sentence, in order.
        window: how many sentences are taken on each side.

    Returns:
        (S, k) int64, -1 in the places that are left, which are the last ones. k is 2 * window + 1,
        or less where no document has as many sentences.

    Examples:
        >>> nearby_sentences(np.array([0, 0, 1]), window=1).tolist()
        [[0, 1, -1], [1, 0, -1], [2, -1, -1]]
    """
    longest = int(np.unique(documents, return_counts=True)[1].max(initial=1))
    window = min(window, longest - 1)
    steps = [0, *(step for far in range(1, window + 1) for step in (-far, far))]
    near = np.arange(len(documents))[:, None] + np.array(steps)
    inside = (near >= 0) & (near < len(documents))
    inside &= documents[np.where(inside, near, 0)] == documents[:, None]
    order = np.argsort(~inside, axis=1, kind="stable")
    return np.take_along_axis(np.where(inside, near, -1), order, axis=1)
