"""Attention from a token to the other occurrences of its word in the same document.

The idea is that of the word-level module of GCDoc (see docs/papers.md): where one sentence says
little about a name, another sentence of the document may say more.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_rates
from spacy_psa.kernels import available
from spacy_psa.modules.document_attention import DocumentAttention, Scoring
from spacy_psa.modules.initialization import glorot
from spacy_psa.modules.products import Precision, multiplier, multiplier_of_all

BLOCK_ROWS = 512
"""Rows that annotation works on at a time."""


class DocumentMemory(DocumentAttention):
    """Adds to a token what its word means elsewhere in the document: (N, d) -> (N, d).

        c_i = Σ_j α_ij V h_j,  α_i = softmax_j(Q h_i · K h_j / √m)
        a_i = tanh(W c_i),     g_i = σ(U [Q h_i; c_i])
        y_i = g_i ⊙ h_i + (1 - g_i) ⊙ a_i

    j runs over the other occurrences of the word of token i; h are the states of the sentence
    encoder, of d numbers, and m is `width`. A token without another occurrence keeps its state. A
    token may read another one that does not read it.

    Args:
        input_width: d, the width of the input and of the output.
        width: m, the width of queries, keys and values.
        scoring: "attention" as above, or "mean": all occurrences count alike, α_ij is 1 / their
            number.
        dropout: dropout rate on a_i.
        precision: "float32", or "bfloat16" to multiply by Q, K, V, W and U in it.
        memory_dropout: share of the tokens with other occurrences that keep their state in
            training, drawn anew each time.

    Raises:
        InputError: for an unknown `scoring` or `precision`, a width below 1, and a rate that is not
            from 0 to 1.

    Examples:
        >>> memory = DocumentMemory(input_width=6, width=4)
        >>> x = torch.randn(3, 6)
        >>> occurrences = torch.tensor([[2], [-1], [0]])  # tokens 0 and 2 are the same word
        >>> y = memory(x, occurrences)
        >>> torch.equal(y[1], x[1]), torch.equal(y[0], x[0])
        (True, False)
    """

    def __init__(
        self,
        input_width: int,
        width: int = 128,
        scoring: Scoring = "attention",
        dropout: float = 0.3,
        precision: Precision = "float32",
        memory_dropout: float = 0.0,
    ):
        super().__init__(input_width, width, scoring, dropout, precision)
        check_rates(memory_dropout=memory_dropout)
        self.memory_dropout = memory_dropout
        self.gate = glorot(nn.Linear(2 * width, input_width))

    def forward(self, x: Tensor, occurrences: Tensor) -> Tensor:
        """Mix the states with those of the other occurrences.

        Args:
            x: (N, d) the states of the tokens of all documents.
            occurrences: (N, k) int64, rows of x with the other occurrences of each token's word;
                -1 in the places that are left, which are the last ones of a row.
        """
        occurrences = occurrences.to(x.device)
        read = occurrences.new_zeros(len(x) + 1, dtype=torch.bool)
        read[occurrences] = True  # row -1, the last one, stands for none
        reads = (occurrences >= 0).any(1)
        rows = (reads | read[:-1]).nonzero()[:, 0]
        if not len(rows):
            return x
        numbers = torch.arange(len(rows), device=rows.device)
        place = rows.new_full((len(x) + 1,), -1).index_copy(0, rows, numbers)
        others = place[occurrences.index_select(0, rows)]
        reading = reads.index_select(0, rows)
        fast = x.device.type == "cpu" and x.dtype == torch.float32 and not self.training
        if fast and not torch.is_grad_enabled() and available():
            return self._annotate(x, rows, others, reading)
        own = x.index_select(0, rows)
        layers = self.query, self.key, self.value, self.project, self.gate
        query, key, value, project, gate_of = (
            multiplier(layer, self.precision) for layer in layers
        )
        keys, values = key(own), value(own)
        if not reading.all():
            rows, own, others = rows[reading], own[reading], others[reading]
        asked = query(own)
        found = self.read(asked, keys, values, others)
        added = self.dropout(torch.tanh(project(found)))
        gate = torch.sigmoid(gate_of(torch.cat([asked, found], 1)))
        if self.training and self.memory_dropout:
            left_out = torch.rand(len(rows), 1, device=gate.device) < self.memory_dropout
            gate = gate.masked_fill(left_out, 1.0)
        return x.index_copy(0, rows, torch.lerp(added, own, gate))

    def _annotate(self, x: Tensor, rows: Tensor, others: Tensor, reading: Tensor) -> Tensor:
        """Compute what `forward` does, some rows at a time, so that they stay in the cache."""
        from spacy_psa.kernels.document_memory import attend, mix

        width = self.query.out_features
        multiply = multiplier_of_all([self.query, self.key, self.value], self.precision)
        project = multiplier(self.project, self.precision)
        gate_of = multiplier(self.gate, self.precision)
        query, key, value = (x.new_empty(len(rows), width) for _ in range(3))
        for block in _blocks(len(rows)):
            parts = multiply(x.index_select(0, rows[block])).split(width, 1)
            for part, out in zip(parts, (query, key, value), strict=True):
                out[block] = part
        if not reading.all():
            rows, query, others = rows[reading], query[reading], others[reading]
        mixed = x.clone()
        for block in _blocks(len(rows)):
            found = torch.empty_like(query[block])
            tensors = query[block], key, value, others[block]
            attend(*(t.numpy() for t in tensors), self.scoring == "mean", found.numpy())
            added, gate = project(found), gate_of(torch.cat([query[block], found], 1))
            mix(added.numpy(), gate.numpy(), rows[block].numpy(), mixed.numpy())
        return mixed


def _blocks(rows: int) -> Iterator[slice]:
    """Cut a number of rows into blocks."""
    return (slice(start, start + BLOCK_ROWS) for start in range(0, rows, BLOCK_ROWS))
