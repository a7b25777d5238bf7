"""Checks that a model fits a chain component: it scores tags, and not too many pairs of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy
from numpy.typing import NDArray
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.architectures.crf import find_heads
from spacy_psa.errors import InputError

MOST_PAIRS = 1_500_000
"""The largest number of pairs of tags with a weight vector each; these take gigabytes."""


@contextmanager
def scores_no_tags_as_input_error(name: str, model: Model) -> Iterator[None]:
    """Name the architecture as the mistake, if a model that is not for tags fails inside.

    Args:
        name: the name of the component.
        model: its model.

    Raises:
        InputError: in place of other errors, unless the model has one of our heads.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if find_heads(model):
            raise
        raise InputError(
            f"{name}: its model ({model.name}) does not score tags: take spacy-psa.CRF.v1 or "
            f"spacy-psa.Softmax.v1 in [components.{name}.model], over any tok2vec"
        ) from error


def check_shapes(scores: list[Floats2d], tokens: int, legal: NDArray[numpy.bool_]) -> None:
    """Check that a model gives a row for each token, with a number for each tag or pair of tags.

    Args:
        scores: the output of the model for a doc.
        tokens: the number of tokens of the doc.
        legal: (K, K) bool, the legal pairs of tags.

    Raises:
        ValueError: if its arrays have another shape.

    Examples:
        >>> check_shapes([numpy.zeros((3, 4))], 3, numpy.ones((2, 2), dtype=bool))
    """
    k = len(legal)
    widths = {array.shape[-1] for array in scores if len(array)}
    if sum(map(len, scores)) != tokens or not widths <= {k, k * k, int(legal.sum())}:
        shapes = [array.shape for array in scores]
        raise ValueError(f"arrays of the shapes {shapes} for {tokens} tokens and {k} tags")


def check_number_of_pairs(name: str, model: Model, labels: int, pairs: int) -> None:
    """Check that a new model has not too many weight vectors.

    Args:
        name: the name of the component.
        model: its model.
        labels: the number of labels.
        pairs: the number of legal pairs of tags.

    Raises:
        InputError: if each of the pairs were to have a weight vector and they are too many.
    """
    by_pair = any(node.name == "label_pair" for node in model.walk())
    if by_pair and pairs > MOST_PAIRS:
        raise InputError(
            f"{name}: {labels:,} labels make {pairs:,} pairs of tags, too many for a weight vector "
            f'each: set potentials = "transition" in [components.{name}.model] and, for less '
            'memory yet, scheme = "BIO" and small batches'
        )
