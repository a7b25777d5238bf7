"""Words of the training data that are now and then read as unknown ones (Kitaev2018)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc


class RareWords:
    """How often each word form stands in the training data, found while training reads it.

    A text counts once, however often it comes, so from the second epoch on the counts are
    those of the data, and before they are those of what was read. They are of no use after
    training and not saved with the model.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.texts: set[int] = set()

    def draw(
        self, docs: Sequence[Doc], forms: Sequence[str], index: Any, sizes: Sequence[int]
    ) -> NDArray[numpy.bool_]:
        """Which tokens to read as the unknown word, each with probability
        1 / (1 + its form's count).

        forms: (M,) of distinct words. index: (N,) the word of each token.
        sizes: (B,) tokens of each doc. Draws from numpy's generator, which spaCy seeds.
        """
        texts = [hash(doc.to_array(["ORTH"]).tobytes()) for doc in docs]
        is_new = []
        for text in texts:
            is_new.append(text not in self.texts)
            self.texts.add(text)
        found = numpy.bincount(index[numpy.repeat(is_new, sizes)], minlength=len(forms))
        for form, count in zip(forms, found.tolist()):
            self.counts[form] += count
        chances = 1.0 / (1.0 + numpy.array([self.counts[form] for form in forms]))
        return numpy.random.random(len(index)) < chances[index]
