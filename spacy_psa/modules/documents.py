"""Attention over a whole document: from a token to its other occurrences, and between sentences.

The ideas are those of GCDoc and GCDT (see docs/papers.md). Where one sentence tells little about a
name, another sentence of the document may tell more: the word-level module of GCDoc. And a vector
that sums up a sentence and those around it shows more than a single token can see: the
sentence-level modules of both.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spacy_psa.errors import check_choice, check_rates, check_sizes
from spacy_psa.kernels import available
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import glorot
from spacy_psa.modules.products import Precision, multiplier_of_all, multipliers
from spacy_psa.ragged import positions, to_device

Scoring = Literal["attention", "mean"]
Ints = NDArray[np.int64]

BLOCK_ROWS = 512
"""Rows that annotation works on at a time."""


class DocumentAttention(nn.Module):
    """Base class of modules by which a part of a document reads other parts.

        c_i = Σ_j α_ij V h_j,  α_i = softmax_j(Q h_i · K h_j / √m)

    h are vectors of d numbers, and m is `width`. W, in `project`, leads from c to d numbers again.
    The weights are those of scaled dot-product attention (Vaswani et al. 2017, Eq. 1).

    Args:
        input_width: d, the width of the input and of the output.
        width: m, the width of queries, keys and values.
        scoring: "attention" as above, or "mean" to weigh all parts alike, α_ij = 1 / their number.
        dropout: dropout rate on what a part reads from the others.
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
        """Sum the values (S, m) of some rows for each query (R, m), by the weights of their keys.

        `others`, (R, k) int64, has rows of `key`; -1 for none. Each query has at least one.
        """
        missing = others < 0
        if self.scoring == "mean":
            weights = (~missing).to(query) / (~missing).sum(1, keepdim=True)
        else:
            scores = torch.bmm(key[others.clamp(min=0)], query[..., None])[..., 0]
            scores = scores / math.sqrt(query.shape[1])
            weights = torch.softmax(scores.masked_fill(missing, -torch.inf), 1)
        return torch.bmm(weights[:, None], value[others.clamp(min=0)])[:, 0]


class DocumentMemory(DocumentAttention):
    """Adds to a token what its word means elsewhere in the document: (N, d) -> (N, d).

        c_i = Σ_j α_ij V h_j,  α_i = softmax_j(Q h_i · K h_j / √m)
        a_i = tanh(W c_i),     g_i = σ(U [Q h_i; c_i])
        y_i = g_i ⊙ h_i + (1 - g_i) ⊙ a_i

    j runs over the other occurrences of the word of token i; h are the states of the sentence
    encoder. A token without other occurrences keeps its state. A token may read another one that
    does not read it.

    Args:
        memory_dropout: share of the tokens with other occurrences that keep their state in
        training, drawn again each time.

    Examples:
        >>> memory = DocumentMemory(input_width=6, width=4)
        >>> x = torch.randn(3, 6)
        >>> occurrences = torch.tensor([[2], [-1], [0]])  # tokens 0 and 2 are the same word
        >>> y = memory(x, occurrences)
        >>> torch.equal(y[1], x[1]), torch.equal(y[0], x[0])
        (True, False)
    """

    def __init__(
        self, input_width: int, width: int = 128, memory_dropout: float = 0.0, **settings: Any
    ):
        super().__init__(input_width, width, **settings)
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
        occurrences = to_device(occurrences, x.device)
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
        query, key, value, project, gate_of = multipliers(
            self.precision, own, self.query, self.key, self.value, self.project, self.gate
        )
        keys, values = key(own), value(own)
        if not reading.all():
            rows, own, others = rows[reading], own[reading], others[reading]
        queries = query(own)
        context = self.read(queries, keys, values, others)
        added = self.dropout(torch.tanh(project(context)))
        gate = torch.sigmoid(gate_of(torch.cat([queries, context], 1)))
        if self.training and self.memory_dropout:
            left_out = torch.rand(len(rows), 1, device=gate.device) < self.memory_dropout
            gate = gate.masked_fill(left_out, 1.0)
        return x.index_copy(0, rows, torch.lerp(added, own, gate))

    def _annotate(self, x: Tensor, rows: Tensor, others: Tensor, reading: Tensor) -> Tensor:
        """Compute the result of `forward` some rows at a time, so that they stay in the cache."""
        from spacy_psa.kernels.documents import attend, mix

        width = self.query.out_features
        multiply = multiplier_of_all(self.precision, rows, [self.query, self.key, self.value])
        project, gate_of = multipliers(self.precision, rows, self.project, self.gate)
        query, key, value = (x.new_empty(len(rows), width) for _ in range(3))
        for block in _blocks(len(rows)):
            parts = multiply(x.index_select(0, rows[block])).split(width, 1)
            for part, out in zip(parts, (query, key, value), strict=True):
                out[block] = part
        if not reading.all():
            rows, query, others = rows[reading], query[reading], others[reading]
        mixed = x.clone()
        for block in _blocks(len(rows)):
            context = torch.empty_like(query[block])
            tensors = query[block], key, value, others[block]
            attend(*(t.numpy() for t in tensors), self.scoring == "mean", context.numpy())
            added, gate = project(context), gate_of(torch.cat([query[block], context], 1))
            mix(added.numpy(), gate.numpy(), rows[block].numpy(), mixed.numpy())
        return mixed


def _blocks(rows: int) -> Iterator[slice]:
    """Cut a number of rows into blocks."""
    return (slice(start, start + BLOCK_ROWS) for start in range(0, rows, BLOCK_ROWS))


def nearest_occurrences(words: NDArray[Any], documents: Ints, most: int) -> Ints:
    """Find the other places of each word in its document, the nearest first.

    The time grows linearly with the number of tokens, however often a word occurs.

    Args:
        words: (N,) a number for each token; equal numbers are the same word.
        documents: (N,) the number of the document of each token.
        most: k, the most places for a token. Of two places at the same distance, the earlier one
            comes first.

    Returns:
        (N, k) int64, -1 in the places that are left. k is smaller than `most` where no word has as
        many other places.

    Examples:
        >>> words = np.array([7, 8, 7, 9, 7, 8])
        >>> nearest_occurrences(words, np.array([0, 0, 0, 0, 0, 1]), most=2).tolist()
        [[2, 4], [-1, -1], [0, 4], [-1, -1], [2, 0], [-1, -1]]
    """
    order = np.lexsort((words, documents))  # stable: the places of a word ascend
    new = np.ones(len(order), dtype=np.bool_)
    for keys in (words[order], documents[order]):
        new[1:] &= keys[1:] == keys[:-1]
    new[1:] = ~new[1:]
    starts = np.append(np.flatnonzero(new), len(order))
    most = min(most, max(int(np.diff(starts).max(initial=0)) - 1, 1))
    places = np.full((len(order), most), -1)
    if available():
        from spacy_psa.kernels.documents import walk as compiled_walk

        compiled_walk(order, starts, places)
    else:
        walk(order, starts, places)
    return places


def without(occurrences: Ints, left_out: NDArray[np.bool_]) -> Ints:
    """Leave some tokens (N,) out of the occurrences (N, k) of others.

    The others stay in the same order, with -1 in the places that are left, the last ones of a row.
    """
    kept = np.where(left_out[occurrences], -1, occurrences)
    order = np.argsort(kept < 0, axis=1, kind="stable")
    return np.take_along_axis(kept, order, 1)


def walk(order: Ints, starts: Ints, places: Ints) -> None:
    """Fill in the nearest places; the arguments are those of the compiled twin.

    It sorts the k places before each place and the k places after it by their distance.
    """
    most = places.shape[1]
    sizes = np.diff(starts)
    first, end = np.repeat(starts[:-1], sizes), np.repeat(starts[1:], sizes)
    steps = np.arange(1, most + 1)
    near = np.arange(len(order))[:, None] + np.concatenate([-steps, steps])
    inside = (near >= first[:, None]) & (near < end[:, None])
    others = order[np.where(inside, near, 0)]
    distance = np.where(inside, np.abs(others - order[:, None]), np.iinfo(np.int64).max)
    chosen = np.argsort(distance, axis=1, kind="stable")[:, :most]
    rows = np.arange(len(order))[:, None]
    places[order] = np.where(inside[rows, chosen], others[rows, chosen], -1)


class SentenceContext(DocumentAttention):
    """Adds to each token the subject of its sentence and of those around it: (N, d) -> (N, d).

        s_i = the mean of h_t over the tokens t of sentence i
        c_i = Σ_j α_ij V s_j,  α_i = softmax_j(Q s_i · K s_j / √m)
        a_i = tanh(W c_i),     g_t = σ(U P h_t + R c_i)
        y_t = g_t ⊙ h_t + (1 - g_t) ⊙ a_i

    j runs over sentence i itself and its neighbours in the document; h are the states of the
    sentence encoder. P h_t also has the width m.

    Examples:
        >>> context = SentenceContext(input_width=6, width=4)
        >>> near = torch.tensor([[0, 1], [1, 0]])  # two sentences that see each other
        >>> context(torch.randn(5, 6), torch.tensor([2, 3]), near).shape
        torch.Size([5, 6])
    """

    def __init__(self, input_width: int, width: int = 128, **settings: Any):
        super().__init__(input_width, width, **settings)
        self.token = glorot(nn.Linear(input_width, width))
        self.gate_token = glorot(nn.Linear(width, input_width))
        self.gate_context = glorot(nn.Linear(width, input_width, bias=False))

    def forward(self, x: Tensor, lengths: Tensor, near: Tensor) -> Tensor:
        """Mix the states with the subjects of the sentences.

        Args:
            x: (N, d) the states of the tokens of all sentences.
            lengths: (S,) int64 on the CPU, the tokens of each sentence, at least 1.
            near: (S, k) int64, the result of `nearby_sentences`.
        """
        sentence, _ = positions(lengths, x.device)
        sums = x.new_zeros(len(lengths), x.shape[1]).index_add(0, sentence, x)
        means = sums / to_device(lengths, x.device)[:, None]
        query, key, value, project = multipliers(
            self.precision, means, self.query, self.key, self.value, self.project
        )
        token, gate_token, gate_context = multipliers(
            self.precision, x, self.token, self.gate_token, self.gate_context
        )
        context = self.read(query(means), key(means), value(means), to_device(near, x.device))
        added = self.dropout(torch.tanh(project(context)))
        gate = torch.sigmoid(gate_token(token(x)) + gate_context(context)[sentence])
        return torch.lerp(added[sentence], x, gate)


def nearby_sentences(documents: Ints, window: int) -> Ints:
    """List each sentence and those around it in its document, the nearest first.

    Args:
        documents: (S,) the number of the document of each sentence, in order.
        window: the number of sentences on each side.

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
