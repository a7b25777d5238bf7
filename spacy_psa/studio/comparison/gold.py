"""Gold annotation as one sequence of tokens, however it is cut into docs."""

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.vocab import Vocab

from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.errors import InputError
from spacy_psa.sentences import sentence_bounds
from spacy_psa.studio.comparison.units import Unit, Units


class Gold(NamedTuple):
    """A corpus with the truth. Units and sentences count the tokens of the whole corpus.

    Examples:
        >>> gold = Gold(["Ada", "left", "Go"], [" "] * 3, [(0, 2), (2, 3)], [[(0, 1, "PER")], []],
        ...             numpy.ones(3, dtype=bool), documents=2)
        >>> gold.by_sentence([(2, 3, "PER")])
        [[], [(2, 3, 'PER')]]
    """

    words: list[str]
    spaces: list[str]
    """What stands after each word."""
    sentences: list[tuple[int, int]]
    """The first token of each sentence, and the token after its last."""
    units: list[list[Unit]]
    """The gold units of each sentence, in which they begin."""
    known: NDArray[numpy.bool_]
    """(tokens,) whether the token is annotated."""
    documents: int

    def by_sentence(self, units: Iterable[Unit]) -> list[list[Unit]]:
        """Give each sentence the units that begin in it; those on unknown tokens are left out."""
        starts = [start for start, _ in self.sentences]
        found: list[list[Unit]] = [[] for _ in starts]
        for unit in units:
            if self.known[unit[0] : unit[1]].all():
                found[bisect_right(starts, unit[0]) - 1].append(unit)
        return found


def read_gold(path: Path, units: Units) -> Gold:
    """Read a corpus.

    Args:
        path: a `.spacy` file, or a folder of them.
        units: what is compared.

    Raises:
        InputError: if there is no such file, it is not a `.spacy` file, or nothing is annotated.
    """
    words: list[str] = []
    spaces: list[str] = []
    sentences: list[tuple[int, int]] = []
    found: list[Unit] = []
    known = [numpy.zeros(0, dtype=bool)]
    documents = 0
    for doc in read_docbins(path, Vocab()):
        at, documents = len(words), documents + 1
        words += [token.text for token in doc]
        spaces += [token.whitespace_ for token in doc]
        sentences += [(at + start, at + end) for start, end in sentence_bounds(doc) if end > start]
        found += [(at + start, at + end, label) for start, end, label in units.of(doc)]
        known.append(units.known(doc))
    if not found:
        raise InputError(f"{path}: no gold {units.kind} in it; give annotated documents")
    gold = Gold(words, spaces, sentences, [], numpy.concatenate(known), documents)
    return gold._replace(units=gold.by_sentence(found))
