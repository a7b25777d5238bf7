"""What is kept of the trees of a treebank: labels, features, empty elements, repeats, roots."""

import re
from dataclasses import dataclass
from typing import Literal

from spacy_psa.corpora.trees import ROOTS

Labels = Literal["bare", "functions", "whole"]

_DECORATION = re.compile(r"[-=|]")
_INDEX = re.compile(r"[-=]\d+(?![^-=|])|\|[^-=]*")
FEATURES = "##"


def bare(label: str) -> str:
    """Give the category of a label without its function tags and indices.

    NP-SBJ-1 and NP=2 are NP. ADVP|PRT, where an annotator was in doubt, is ADVP; EVALB treats
    ADVP and PRT as equal. A label that begins with a dash (-LRB-) stays as it is.

    Examples:
        >>> [bare(label) for label in ("NP-SBJ-1", "NP=2", "ADVP|PRT", "-LRB-")]
        ['NP', 'NP', 'ADVP', '-LRB-']
    """
    return label if label.startswith("-") else _DECORATION.split(label, maxsplit=1)[0]


def with_functions(label: str) -> str:
    """Give the category of a label with its function tags, without indices.

    Examples:
        >>> [with_functions(label) for label in ("NP-SBJ-1", "NP=2", "ADVP|PRT-CLR", "-LRB-")]
        ['NP-SBJ', 'NP', 'ADVP-CLR', '-LRB-']
    """
    return label if label.startswith("-") else _INDEX.sub("", label)


@dataclass(frozen=True)
class TreeStyle:
    """Says what is kept of the trees of a treebank; by default all.

    Args:
        labels: "bare" for categories alone (NP), "functions" for categories and function tags
            (NP-SBJ), "whole" for labels as they stand (NP-SBJ-1).
        bare_tags: whether parts of speech are bare.
        remove_empty: whether empty elements (-NONE-), and constituents that become empty without
            them, are left out; otherwise an empty element is an error.
        merge_same: whether constituents with the same label over the same words, such as NP over
            NP after a trace is removed, become one constituent.
        features: whether the features of the SPMRL shared tasks (NN##case=nom##) are cut off.
        roots: labels that are no constituents at the root, besides TOP, ROOT and S1.

    Examples:
        >>> PENN.label("NP-SBJ-1"), SPMRL.tag("NN##case=nom##"), AS_IS.label("NP-SBJ-1")
        ('NP', 'NN', 'NP-SBJ-1')
    """

    labels: Labels = "whole"
    bare_tags: bool = False
    remove_empty: bool = False
    merge_same: bool = False
    features: bool = False
    roots: frozenset[str] = frozenset()

    def label(self, label: str) -> str:
        """Give what is kept of the label of a constituent."""
        label = self.without_features(label)
        if self.labels == "whole":
            return label
        return bare(label) if self.labels == "bare" else with_functions(label)

    def tag(self, tag: str) -> str:
        """Give what is kept of a part of speech."""
        tag = self.without_features(tag)
        return bare(tag) if self.bare_tags else tag

    def without_features(self, label: str) -> str:
        """Cut the features off, if that is the style."""
        return label.split(FEATURES, maxsplit=1)[0] if self.features else label

    def is_root(self, label: str) -> bool:
        """Tell whether a constituent with this label is left out at the root."""
        return label in ROOTS or label in self.roots


AS_IS = TreeStyle()
"""Trees as they stand."""
PENN = TreeStyle(labels="bare", bare_tags=True, remove_empty=True, merge_same=True)
"""Trees prepared as is usual for the Penn Treebank, apart from `merge_same`: standard files keep
repeats, which `replace(PENN, merge_same=False)` does."""
SPMRL = TreeStyle(labels="bare", remove_empty=True, features=True, roots=frozenset({"VROOT"}))
"""Trees of the SPMRL shared tasks."""
