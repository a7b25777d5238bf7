"""The questions that every structured distribution answers, in one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

Value = TypeVar("Value")


class StructuredDistribution(ABC, Generic[Value]):
    """Base class of exact distributions over the structures of each of B sentences.

    A value is one structure of one sentence: its tags in a `LinearChain`, its tree in a `SpanTree`.
    Arguments and results of methods have one value, or a list of values, for each sentence, in
    order.

    Everything is exact. It is computed in float64 and returned in the type of the potentials. A
    sentence in which no structure is possible has the log partition -inf, marginals of 0 and the
    entropy 0. It has no best structure (asking for it raises an error) and does not change the
    gradients of other sentences. Gradients flow to the potentials from `log_partition`, `log_prob`,
    `score`, `max`, `marginals` and `entropy`.

    Attributes:
        lengths: (B,) int64 on the CPU, the tokens of each sentence.
        structure: the name of a value in errors.

    Examples:
        >>> from spacy_psa.structs.chain import LinearChain
        >>> emissions = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])  # one sentence, 2 tokens, 2 tags
        >>> distribution = LinearChain.from_emissions(emissions, torch.tensor([2]))
        >>> distribution.argmax
        [tensor([0, 1])]
        >>> distribution.log_prob(distribution.argmax).exp()
        tensor([0.6439])
    """

    lengths: Tensor
    structure: str

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """The type of the potentials."""

    # ------------------------------------------------------------------ probabilities

    @cached_property
    def log_partition(self) -> Tensor:
        """The log of the sum of exp(score) over all structures, (B,) nats.

        It is -inf if no structure is possible.
        """
        return self._log_z.to(self.dtype)

    def score(self, values: Any) -> Tensor:
        """Sum the log potentials of one value for each sentence: (B,).

        Raises:
            ValueError: if a value is not a structure over the tokens of its sentence. The error
                names the sentence.
        """
        return self._score(values).to(self.dtype)

    def log_prob(self, values: Any) -> Tensor:
        """Compute log p(value) of one value for each sentence: (B,) nats.

        An excluded value has -inf, with the gradient 0. Errors are those of `score`.
        """
        score = self._score(values)
        log_prob = (score - self._log_z).masked_fill(score == -torch.inf, -torch.inf)
        return log_prob.to(self.dtype)

    @property
    @abstractmethod
    def marginals(self) -> Tensor:
        """The probability of each part that a structure may have."""

    @property
    @abstractmethod
    def entropy(self) -> Tensor:
        """The entropy of the distribution, (B,) nats."""

    # --------------------------------------------------------------------- structures

    @cached_property
    def argmax(self) -> list[Value]:
        """The best value of each sentence.

        Raises:
            ValueError: if no structure is possible. The error names the sentences.
        """
        scores, values = self._best
        self._check_possible(scores)
        return values

    @property
    @abstractmethod
    def max(self) -> Tensor:
        """The score of the best value, (B,); -inf if no structure is possible."""

    def kbest(self, k: int) -> list[list[tuple[float, Value]]]:
        """Find the k best distinct values of each sentence.

        Returns:
            For each sentence a list of (log probability, value), the best first. The list is
            shorter if fewer values are possible. The log probabilities are in nats, under the whole
            distribution, and without a gradient (`log_prob` of the values has one).

        Raises:
            ValueError: if k is below 1.

        Examples:
            >>> from spacy_psa.structs.chain import LinearChain
            >>> emissions = torch.tensor([[[1.0, 0.0, -1.0]]])  # one sentence, 1 token, 3 tags
            >>> chain = LinearChain.from_emissions(emissions, torch.tensor([1]))
            >>> [(round(log_prob, 4), tags) for log_prob, tags in chain.kbest(2)[0]]
            [(-0.4076, tensor([0])), (-1.4076, tensor([1]))]
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        scores, values = self._kbest(k)
        log_probs = (scores - self._log_z.detach().to(scores.device)[None]).t().tolist()
        possible = (scores > -torch.inf).sum(0).tolist()
        return [
            [(log_probs[b][i], values[i][b]) for i in range(count)]
            for b, count in enumerate(possible)
        ]

    @torch.no_grad()
    def sample(self, n: int = 1, generator: torch.Generator | None = None) -> list[list[Value]]:
        """Draw n independent values of each sentence.

        The generator must be on the device of the potentials; by default it is torch's own.

        Raises:
            ValueError: if n is below 1, and if no structure is possible. The error names the
                sentences.

        Examples:
            >>> from spacy_psa.structs.chain import LinearChain
            >>> only = torch.tensor([[[0.0, -torch.inf], [-torch.inf, 0.0]]])
            >>> LinearChain.from_emissions(only, torch.tensor([2])).sample(2)
            [[tensor([0, 1]), tensor([0, 1])]]
        """
        if n < 1:
            raise ValueError(f"n must be at least 1, not {n}")
        self._check_possible(self._log_z)
        return self._sample(n, generator)

    def _check_possible(self, scores: Tensor) -> None:
        impossible = (scores == -torch.inf).nonzero()[:, 0].tolist()
        if impossible:
            raise ValueError(f"no {self.structure} is possible for the sentences {impossible}")

    # ---------------------------------------------------------------------- inference

    # Cached results are recorded for gradients whenever the potentials have gradients, even if
    # the first request is made under no_grad: a later loss must not treat them as constants.

    @property
    @abstractmethod
    def _log_z(self) -> Tensor:
        """log Z, (B,) float64."""

    @abstractmethod
    def _score(self, values: Any) -> Tensor:
        """The score of one value for each sentence, (B,) float64."""

    @property
    @abstractmethod
    def _best(self) -> tuple[Tensor, list[Value]]:
        """The best scores, (B,) float64, -inf if no structure is possible, and the best values."""

    @abstractmethod
    def _kbest(self, k: int) -> tuple[Tensor, list[list[Value]]]:
        """The k best scores, (k, B) float64, -inf if there are fewer, and k lists of B values."""

    @abstractmethod
    def _sample(self, n: int, generator: torch.Generator | None) -> list[list[Value]]:
        """Draw as `sample` does; every sentence has a possible structure."""


@contextmanager
def recording() -> Iterator[None]:
    """Make a context in which gradients are recorded, even under `no_grad` and `inference_mode`."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def check_masks(**masks: tuple[Tensor | None, tuple[int, ...]]) -> None:
    """Raise ValueError unless each mask, by its name, is bool and has its shape, or is None."""
    for name, (mask, shape) in masks.items():
        if mask is not None and (mask.shape != shape or mask.dtype != torch.bool):
            given = f"{mask.dtype} of shape {tuple(mask.shape)}"
            raise ValueError(f"{name} must be bool of shape {shape}, not {given}")
