"""What all structured distributions answer, in the same words."""

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
    """A distribution over the structures of each of B sentences, given by log potentials.

    A value is one structure of one sentence: its tags in a `LinearChain`, its tree in a
    `SpanTree`. What takes or gives values takes or gives one (or a list of them) for each
    sentence, in order.

    Everything is exact, computed in float64 and answered in the type of the potentials. A
    sentence in which no structure is possible has a log partition of -inf, marginals and
    entropy 0, no best structure (an error) and no influence on the gradients of others.
    Gradients flow to the potentials from `log_partition`, `log_prob`, `score`, `max`,
    `marginals` and `entropy`.

    lengths: (B,) int64 on the CPU, the tokens of each sentence.
    """

    lengths: Tensor
    structure: str
    """What a value is called in an error."""

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """The type of the potentials."""

    # ------------------------------------------------------------------ probabilities

    @cached_property
    def log_partition(self) -> Tensor:
        """log Z, (B,) nats; -inf where no structure is possible."""
        return self._log_z.to(self.dtype)

    def score(self, values: Any) -> Tensor:
        """The sum of the log potentials, (B,), of one value for each sentence.

        Raises ValueError, naming the sentence, for what is no structure over its tokens.
        """
        return self._score(values).to(self.dtype)

    def log_prob(self, values: Any) -> Tensor:
        """log p(value), (B,) nats, of one value for each sentence, as `score` takes them.

        -inf, with gradient 0, for a value that is excluded.
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

        Raises ValueError, naming the sentences, where none is possible.
        """
        scores, values = self._best
        self._check_possible(scores)
        return values

    @property
    @abstractmethod
    def max(self) -> Tensor:
        """The score of the best value, (B,); -inf where none is possible."""

    def kbest(self, k: int) -> list[list[tuple[float, Value]]]:
        """For each sentence its k best distinct values as (log probability, value), best first.

        The log probabilities are under the whole distribution and carry no gradient
        (`log_prob` of the values does). There are fewer than k where fewer are possible.

        Raises ValueError for k < 1.
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
        """n independent values of each sentence.

        generator: on the device of the potentials.

        Raises ValueError for n < 1 and, naming the sentences, where none is possible.
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

    # What is cached is recorded for gradients whenever the potentials have them, even if
    # it was first asked for under no_grad: a later loss must not take it for a constant.

    @property
    @abstractmethod
    def _log_z(self) -> Tensor:
        """log Z, (B,) float64."""

    @abstractmethod
    def _score(self, values: Any) -> Tensor:
        """(B,) float64."""

    @property
    @abstractmethod
    def _best(self) -> tuple[Tensor, list[Value]]:
        """Scores (B,) float64, -inf where nothing is possible, and the best values."""

    @abstractmethod
    def _kbest(self, k: int) -> tuple[Tensor, list[list[Value]]]:
        """Scores (k, B) float64, -inf where there are no more, and k lists of B values."""

    @abstractmethod
    def _sample(self, n: int, generator: torch.Generator | None) -> list[list[Value]]:
        """As `sample`, of sentences in which something is possible."""


@contextmanager
def recording() -> Iterator[None]:
    """Gradients are recorded inside, even under `no_grad` and `inference_mode`."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def check_mask(name: str, mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The mask. Raises ValueError where it is not bool or of another shape."""
    if mask.shape != shape or mask.dtype != torch.bool:
        raise ValueError(f"{name} must be bool {shape}, not {mask.dtype} {tuple(mask.shape)}")
    return mask
