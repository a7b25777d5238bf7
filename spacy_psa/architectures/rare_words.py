"""Reads some words of the training data as unknown ones, at random (code of Kitaev2018)."""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc


class RareWords:
    """Counts the word forms of the training data while training reads them.

    A text counts once, however often training reads it. So from the second epoch on, the counts are
    over the training data; before that, they are over the part that was read. They are of no use
    after training and are not saved with the model; `state_dict` gives them to the checkpoint of
    a training.

    Examples:
        >>> import spacy
        >>> rare = RareWords()
        >>> doc = spacy.blank("en")("a rose is a rose")
        >>> rare.draw([doc], ["a", "rose", "is"], numpy.array([0, 1, 2, 0, 1]), [5]).shape
        (5,)
        >>> rare.counts["rose"]
        2
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.texts: set[int] = set()

    def draw(
        self, docs: Sequence[Doc], forms: Sequence[str], index: Any, sizes: Sequence[int]
    ) -> NDArray[numpy.bool_]:
        """Draw the tokens that are read as the unknown word.

        The probability of each token is 1 / (1 + the count of its form). The numbers are drawn from
        numpy's generator, which spaCy seeds.

        Args:
            docs: the B docs.
            forms: (M,) the normal forms of their distinct words.
            index: (N,) the word of each token.
            sizes: (B,) the number of tokens of each doc.

        Returns:
            (N,) bool, true for the tokens that are read as the unknown word.
        """
        self.count(docs, forms, index, sizes)
        chances = 1.0 / (1.0 + numpy.array([self.counts[form] for form in forms]))
        return numpy.random.random(len(index)) < chances[index]

    def count(
        self, docs: Sequence[Doc], forms: Sequence[str], index: Any, sizes: Sequence[int]
    ) -> None:
        """Count the forms of the docs that are new. The arguments are those of `draw`."""
        texts = [_hash(doc.to_array(["ORTH"]).tobytes()) for doc in docs]
        is_new = []
        for text in texts:
            is_new.append(text not in self.texts)
            self.texts.add(text)
        found = numpy.bincount(index[numpy.repeat(is_new, sizes)], minlength=len(forms))
        for form, count in zip(forms, found.tolist()):
            self.counts[form] += count

    def state_dict(self) -> dict[str, Any]:
        """The counts and the texts that were read, for the checkpoint of a training."""
        return {"counts": dict(self.counts), "texts": sorted(self.texts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set the counts and the texts to those of a `state_dict`."""
        self.counts, self.texts = Counter(state["counts"]), set(state["texts"])


def _hash(text: bytes) -> int:
    # Python's own hash differs between processes, and a resumed training is a new process.
    return int.from_bytes(blake2b(text, digest_size=7).digest(), "little")
