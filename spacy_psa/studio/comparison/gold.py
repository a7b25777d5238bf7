"""Gold annotation as one sequence of tokens, however it is divided into docs."""

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
    """A gold corpus. Units and sentences count the tokens of the whole corpus."""

    words: list[str]
    spaces: list[str]
    """The space, or nothing, after each word."""
    sentences: list[tuple[int, int]]
    """The first token of each sentence, and the token after its last."""
    units: list[list[Unit]]
    """The gold units of each sentence, in which they begin."""
    known: NDArray[numpy.bool_]
    """(tokens,) whether the token is annotated."""
    documents: int

    def by_sentence(self, units: Iterable[Unit]) -> list[list[Unit]]:
        """Assign units to the sentences in which they begin, without those on unknown tokens."""
        starts = [start for start, _ in self.sentences]
        own: list[list[Unit]] = [[] for _ in starts]
        for unit in units:
            if self.known[unit[0] : unit[1]].all():
                own[bisect_right(starts, unit[0]) - 1].append(unit)
        return own


def read_gold(path: Path, units: Units) -> Gold:
    """Read a corpus, a `.spacy` file or a folder of them.

    Raises:
        InputError: if there is no such file, it is not a `.spacy` file, or nothing is annotated.
    """
    words: list[str] = []
    spaces: list[str] = []
    sentences: list[tuple[int, int]] = []
    annotated: list[Unit] = []
    known = [numpy.zeros(0, dtype=bool)]
    documents = 0
    for doc in read_docbins(path, Vocab()):
        at, documents = len(words), documents + 1
        words += [token.text for token in doc]
        spaces += [token.whitespace_ for token in doc]
        sentences += [(at + start, at + end) for start, end in sentence_bounds(doc) if end > start]
        annotated += [(at + start, at + end, label) for start, end, label in units.of(doc)]
        known.append(units.known(doc))
    if not annotated:
        raise InputError(f"{path}: no gold {units.kind} in it; use a file with annotated documents")
    gold = Gold(words, spaces, sentences, [], numpy.concatenate(known), documents)
    return gold._replace(units=gold.by_sentence(annotated))
