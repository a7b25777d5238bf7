"""The rules of PARSEVAL: left-out words and labels, equal ones, and EVALB's .prm files.

Parsing papers quote the scores of EVALB (Sekine and Collins, 1997). COLLINS.prm is its setup for
the Penn Treebank. spmrl.prm is the setup of the SPMRL shared tasks (Seddah et al., 2013), which
have their own build of EVALB that deletes no words.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from spacy_psa.corpora.lines import read_lines
from spacy_psa.errors import InputError

Pairs = tuple[tuple[str, str], ...]

IGNORED = ("DEBUG", "MAX_ERROR")
"""Settings that are read and ignored.

They control EVALB's own output and when it gives up, which this scorer never does."""


@dataclass(frozen=True)
class Params:
    """The rules of a comparison of trees; the defaults are those of COLLINS.prm."""

    delete_labels: frozenset[str] = frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."})
    """Constituents with these labels do not count. Words with these parts of speech are removed
    from the tree before brackets are compared."""
    delete_for_length: frozenset[str] = frozenset({"-NONE-"})
    """Words with these parts of speech do not count in the length of a sentence."""
    equal_labels: Pairs = (("ADVP", "PRT"),)
    """Pairs of labels that count as the same, in both directions. Labels that a chain of pairs
    connects form one class."""
    equal_words: Pairs = ()
    """Pairs of words that count as the same, in the same way."""
    quote_labels: frozenset[str] = frozenset()
    """Parts of speech of quotation marks. If two trees keep different numbers of words, a quotation
    mark that one tree keeps and the other deletes is put back. It is the same mark if as many kept
    words are before it and both its parts of speech are among these."""
    labelled: bool = True
    """Whether labels count, or only offsets."""
    cutoff: int = 40
    """The greatest length, in words, of the sentences in the second column of figures."""
    keep_words: bool = False
    """Whether to follow EVALB's build for SPMRL: no words are deleted, parts of speech are cut in
    the same way as the labels of constituents, and both are also cut at "#", where the features of
    SPMRL begin."""

    def cut(self, label: str) -> str:
        """Return the part of a label that counts: NP-SBJ and NP=2 are NP."""
        return self._tail.split(label, maxsplit=1)[0]

    def tag(self, tag: str) -> str:
        """Return the part of a part of speech that counts, the same for equal ones."""
        tag = self.cut(tag) if self.keep_words else tag
        return self.label_class.get(tag, tag)

    def deletes_word(self, tag: str) -> bool:
        """Tell whether words with this part of speech are removed."""
        return not self.keep_words and tag in self.delete_labels

    @cached_property
    def deleted(self) -> frozenset[str]:
        """The labels, after cutting, of constituents that do not count."""
        if self.keep_words:  # that build of EVALB also cuts the labels of its .prm file
            return frozenset(map(self.cut, self.delete_labels))
        return self.delete_labels

    @cached_property
    def label_class(self) -> dict[str, str]:
        """Maps each label that is equal to others to the one that stands for them."""
        return _classes(self.equal_labels)

    @cached_property
    def word_class(self) -> dict[str, str]:
        """Maps each word that is equal to others to the one that stands for them."""
        return _classes(self.equal_words)

    @cached_property
    def _tail(self) -> re.Pattern[str]:
        return re.compile("[-=#]" if self.keep_words else "[-=]")


COLLINS = Params()
SPMRL = Params(
    delete_labels=frozenset({"TOP", "ROOT", "S1", "-NONE-", "VROOT"}),
    equal_labels=(),
    cutoff=70,
    keep_words=True,
)


def read_params(path: Path, keep_words: bool = False) -> Params:
    """Read the rules in a .prm file of EVALB; settings that it does not name are off."""
    sets: dict[str, list[str]] = {
        key: [] for key in ("DELETE_LABEL", "DELETE_LABEL_FOR_LENGTH", "QUOTE_LABEL")
    }
    pairs: dict[str, list[tuple[str, str]]] = {"EQ_LABEL": [], "EQ_WORD": []}
    params = replace(COLLINS, keep_words=keep_words)
    for number, line in read_lines(path, Counter()):
        if line.startswith("#") or not line.strip():
            continue
        key, *values = line.split()
        value = " ".join(values)
        try:
            if not values:
                raise ValueError("has no value")
            if key in sets:
                sets[key].append(value)
            elif key in pairs:
                first, second = values
                pairs[key].append((first, second))
            elif key == "LABELED":
                params = replace(params, labelled=bool(int(value)))
            elif key == "CUTOFF_LEN":
                params = replace(params, cutoff=int(value))
            elif key not in IGNORED:
                raise ValueError("is not a setting of EVALB")
        except ValueError as error:
            raise InputError(
                f"{path}:{number}: {line.strip()!r}: {error}; correct the line"
            ) from error
    return replace(
        params,
        delete_labels=frozenset(sets["DELETE_LABEL"]),
        delete_for_length=frozenset(sets["DELETE_LABEL_FOR_LENGTH"]),
        quote_labels=frozenset(sets["QUOTE_LABEL"]),
        equal_labels=tuple(pairs["EQ_LABEL"]),
        equal_words=tuple(pairs["EQ_WORD"]),
    )


def _classes(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    classes: dict[str, str] = {}
    for first, second in pairs:
        kept, dropped = classes.setdefault(first, first), classes.setdefault(second, second)
        classes = {name: kept if kind == dropped else kind for name, kind in classes.items()}
    return classes
