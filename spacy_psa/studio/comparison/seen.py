"""F1 by what training data had: the unit itself, its words, or not all of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from spacy.vocab import Vocab

from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.errors import InputError
from spacy_psa.scoring.sentence_counts import Count
from spacy_psa.studio.comparison.units import Unit, Units

CLASSES = ("seen with this type", "all words seen", "a word not seen")


class Seen(NamedTuple):
    """The words of training data, and its units with their types.

    Examples:
        >>> seen = Seen({"Bank", "of", "Kenya"}, {(("Kenya",), "LOC")})
        >>> [seen.place(words, "LOC") for words in (["Kenya"], ["Bank"], ["Leeds"])]
        [0, 1, 2]
    """

    words: set[str]
    units: set[tuple[tuple[str, ...], str]]

    def place(self, words: Sequence[str], label: str) -> int:
        """Give the class of a unit, a place in `CLASSES`."""
        if (tuple(words), label) in self.units:
            return 0
        return 1 if self.words.issuperset(words) else 2


def read_seen(path: Path, units: Units) -> Seen:
    """Read training data.

    Args:
        path: a `.spacy` file, or a folder of them.
        units: what is compared.

    Raises:
        InputError: if there is no such file, it is not a `.spacy` file, or it has no word.
    """
    seen = Seen(set(), set())
    for doc in read_docbins(path, Vocab()):
        words = [token.text for token in doc]
        seen.words.update(words)
        seen.units.update((tuple(words[s:e]), label) for s, e, label in units.of(doc))
    if not seen.words:
        raise InputError(f"{path}: no words in it; give the training data of the models")
    return seen


def by_seen(
    seen: Seen,
    words: Sequence[str],
    gold: Sequence[Sequence[Unit]],
    found: Sequence[Sequence[Unit]],
) -> list[Count]:
    """Count the units of each of the `CLASSES`.

    A gold unit and a predicted one are each of the class of their own words and type.

    Args:
        seen: the training data.
        words: the words of the corpus.
        gold: the gold units of each sentence.
        found: the predicted units of each sentence.
    """
    counts = [[0, 0, 0] for _ in CLASSES]
    for wanted, given in zip(gold, found, strict=True):
        for kind, units in enumerate(({*wanted} & {*given}, {*given}, {*wanted})):
            for start, end, label in units:
                counts[seen.place(words[start:end], label)][kind] += 1
    return [Count(*each) for each in counts]
