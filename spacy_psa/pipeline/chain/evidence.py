"""What is known of the analysis of a sentence, and how a user says it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Token

from spacy_psa.errors import InputError
from spacy_psa.pipeline.asked_spans import check_label
from spacy_psa.pipeline.chain.span_tags import Spans

OUTSIDE = "O"
"""Stands for "in no span" among the labels that a token may have."""
Labels = Mapping[int | Token, str | Iterable[str]]
"""Labels for some tokens of a doc, by token or by its number."""


class Known(NamedTuple):
    """What is known of the analysis of a sentence of n tokens.

    Examples:
        >>> Known().says_nothing
        True
        >>> Known(forbidden=[(0, 2, "PER")]).joined(Known(forbidden=[(0, 1, "ORG")])).forbidden
        [(0, 2, 'PER'), (0, 1, 'ORG')]
    """

    allowed: NDArray[numpy.bool_] | None = None
    """(n, K) bool, the tags that each token may have; None for all."""
    forbidden: Spans = []  # noqa: RUF012
    """(start, end, label) over the tokens of the sentence: no analysis has one of them."""

    @property
    def says_nothing(self) -> bool:
        """Whether all analyses agree."""
        return self.allowed is None and not self.forbidden

    def joined(self, other: "Known") -> "Known":
        """Join what is known from two sources."""
        allowed = self.allowed if other.allowed is None else other.allowed
        if self.allowed is not None and other.allowed is not None:
            allowed = self.allowed & other.allowed
        return Known(allowed, self.forbidden + other.forbidden)


def read_labels(name: str, doc: Doc, given: Labels, labels: Iterable[str]) -> dict[int, set[str]]:
    """Read the labels that a user gives for tokens.

    Args:
        name: the name of the component, for errors.
        doc: the doc.
        given: one label or several for each token.
        labels: the labels that may be given.

    Raises:
        InputError: for a token that is not in the doc, and for a label that may not be given.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> read_labels("tagger", doc, {1: "VERB"}, ["NOUN", "VERB"])
        {1: {'VERB'}}
    """
    labels = tuple(labels)
    found: dict[int, set[str]] = {}
    for key, value in given.items():
        i = key.i if isinstance(key, Token) else int(key)
        if not 0 <= i < len(doc) or (isinstance(key, Token) and key.doc is not doc):
            raise InputError(
                f"{name}: token {i} is not in the doc of {len(doc)} tokens: give its number from 0"
            )
        own = {value} if isinstance(value, str) else set(value)
        for label in sorted(own):
            check_label(name, label, labels, f"token {i} {doc[i].text!r}")
        found[i] = own
    return found
