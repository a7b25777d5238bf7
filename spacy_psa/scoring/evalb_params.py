"""What PARSEVAL leaves out and holds equal: the settings of EVALB and its .prm files.

EVALB (Sekine and Collins, 1997) is the scorer that parsing papers quote. COLLINS.prm is
its setup for the Penn Treebank, spmrl.prm that of the SPMRL shared tasks (Seddah et al.,
2013), whose own build of EVALB deletes no words.
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
"""Settings of EVALB's own output, and of when it gives up, which this scorer never does."""


@dataclass(frozen=True)
class Params:
    """The rules of a comparison; as it stands, COLLINS.prm.

    delete_labels: constituents of these labels do not count, and words with these parts
        of speech are taken out of the tree before brackets are compared.
    delete_for_length: parts of speech of words that do not count in a sentence's length.
    equal_labels, equal_words: pairs that count as the same, in both directions. Labels
        that a chain of pairs connects are one class.
    quote_labels: where two trees keep different numbers of words, a quotation mark that
        one of them keeps and the other deletes is put back, if both its parts of speech
        are of these.
    labelled: whether labels count, or offsets alone.
    cutoff: in words, the length of the second column of figures.
    keep_words: as EVALB's build for SPMRL, delete no words, and cut parts of speech as
        constituents' labels are cut, both also at "#", where SPMRL's features begin.
    """

    delete_labels: frozenset[str] = frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."})
    delete_for_length: frozenset[str] = frozenset({"-NONE-"})
    equal_labels: Pairs = (("ADVP", "PRT"),)
    equal_words: Pairs = ()
    quote_labels: frozenset[str] = frozenset()
    labelled: bool = True
    cutoff: int = 40
    keep_words: bool = False

    def cut(self, label: str) -> str:
        """The part of a label that counts: NP-SBJ and NP=2 are NP."""
        return self._tail.split(label, maxsplit=1)[0]

    def tag(self, tag: str) -> str:
        """The part of a part of speech that counts, one for those that are held equal."""
        tag = self.cut(tag) if self.keep_words else tag
        return self.label_class.get(tag, tag)

    def deletes_word(self, tag: str) -> bool:
        """Whether words of this part of speech are taken out."""
        return not self.keep_words and tag in self.delete_labels

    @cached_property
    def deleted(self) -> frozenset[str]:
        """The labels, cut, of constituents that do not count."""
        if self.keep_words:  # that build of EVALB cuts what it compares with, too
            return frozenset(map(self.cut, self.delete_labels))
        return self.delete_labels

    @cached_property
    def label_class(self) -> dict[str, str]:
        """One label for all that are held equal to it."""
        return _classes(self.equal_labels)

    @cached_property
    def word_class(self) -> dict[str, str]:
        """One word for all that are held equal to it."""
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
    """The rules of a .prm file of EVALB's; what it does not name is off.

    Raises:
        InputError: the file cannot be read, or a line is none of EVALB's settings.
    """
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
                one, other = values
                pairs[key].append((one, other))
            elif key == "LABELED":
                params = replace(params, labelled=bool(int(value)))
            elif key == "CUTOFF_LEN":
                params = replace(params, cutoff=int(value))
            elif key not in IGNORED:
                raise ValueError("is no setting of EVALB's")
        except ValueError as error:
            raise InputError(f"{path}:{number}: {line.strip()!r}: {error}; correct it") from error
    return replace(
        params,
        delete_labels=frozenset(sets["DELETE_LABEL"]),
        delete_for_length=frozenset(sets["DELETE_LABEL_FOR_LENGTH"]),
        quote_labels=frozenset(sets["QUOTE_LABEL"]),
        equal_labels=tuple(pairs["EQ_LABEL"]),
        equal_words=tuple(pairs["EQ_WORD"]),
    )


def _classes(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one, other in pairs:
        kept, dropped = found.setdefault(one, one), found.setdefault(other, other)
        found = {name: kept if kind == dropped else kind for name, kind in found.items()}
    return found
