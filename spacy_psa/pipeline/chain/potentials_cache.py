"""Keeps the potentials of docs, for a teacher that is asked about the same docs in each pass."""

from collections.abc import Callable, Sequence
from hashlib import blake2b

from spacy.tokens import Doc
from thinc.types import Floats2d

from spacy_psa.errors import check_amounts

Potentials = list[Floats2d]
"""An array for each sentence of a doc."""
ATTRIBUTES: list[int | str] = ["ORTH", "NORM", "SPACY", "SENT_START", "TAG", "POS", "MORPH"]
ATTRIBUTES += ["LEMMA", "DEP", "HEAD", "ENT_IOB", "ENT_TYPE", "ENT_KB_ID"]
"""What a model may read of a token. Docs that agree in it have the same potentials."""


class PotentialsCache:
    """Remembers the potentials of docs, up to a size in memory.

    Docs that no longer fit are computed each time, and so are docs that may not be kept.

    Args:
        gigabytes: the most memory that the potentials take; 0 keeps none.

    Raises:
        InputError: if the size is below 0.

    Examples:
        >>> import numpy, spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> cache = PotentialsCache(gigabytes=0.5)
        >>> def compute(docs):
        ...     print("computing", docs)
        ...     return [[numpy.zeros((len(doc), 5))] for doc in docs]
        >>> for _ in range(2):
        ...     ((array,),) = cache.potentials([doc], compute)
        computing [Ada met Bob]
        >>> array.shape
        (3, 5)
    """

    def __init__(self, gigabytes: float):
        check_amounts(cache_gb=gigabytes)
        self._left = gigabytes * 1e9
        self._kept: dict[bytes, Potentials] = {}

    def potentials(
        self,
        docs: Sequence[Doc],
        compute: Callable[[list[Doc]], list[Potentials]],
        may_keep: Callable[[Doc], bool] = lambda doc: True,
    ) -> list[Potentials]:
        """Give the potentials of docs, and compute only those that are not remembered.

        Args:
            docs: the docs.
            compute: gives the potentials of docs; they are kept on their device.
            may_keep: whether the potentials of a doc depend on this doc alone.
        """
        keys = [_key(doc) if self._left and may_keep(doc) else None for doc in docs]
        found = [None if key is None else self._kept.get(key) for key in keys]
        new = [i for i, potentials in enumerate(found) if potentials is None]
        if new:
            for i, potentials in zip(new, compute([docs[i] for i in new]), strict=True):
                found[i] = potentials
                self._keep(keys[i], potentials)
        return [potentials for potentials in found if potentials is not None]

    def _keep(self, key: bytes | None, potentials: Potentials) -> None:
        size = sum(array.nbytes for array in potentials)
        if key is not None and key not in self._kept and size <= self._left:
            # Copies: an array may be a part of a larger one, which would stay in memory.
            self._kept[key] = [array.copy() for array in potentials]
            self._left -= size


def _key(doc: Doc) -> bytes:
    return blake2b(doc.to_array(ATTRIBUTES).tobytes(), digest_size=16).digest()
