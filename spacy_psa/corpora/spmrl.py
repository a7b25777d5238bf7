"""The treebanks of the SPMRL shared tasks (Seddah et al., 2013): brackets with features.

A part of speech has features between two hash signs: (NN##case=nom|number=sg## Haus). The root of
a tree may be VROOT.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.tree_style import SPMRL, TreeStyle
from spacy_psa.corpora.treebank_files import read_tree_files, tree_docs

ENDINGS = (".ptb", ".ptb.gz", ".mrg", ".mrg.gz")


def read_docs(
    source: Path, vocab: Vocab, repairs: Counter[str] | None = None, style: TreeStyle = SPMRL
) -> Iterator[Doc]:
    """Yield one `Doc` for each tree of the .ptb or .mrg files in a folder or archive.

    The layers of a `Doc` are those of `tree_docs`. Features and the root VROOT are left out.

    Args:
        source: the folder or archive, or a single file of any name.
        vocab: the vocabulary of the docs.
        repairs: counts the repairs, if given.
        style: what is kept of the trees.

    Raises:
        InputError: if there are no such files, or if one does not contain bracketed trees.
    """

    def wanted(name: str) -> bool:
        return name.endswith(ENDINGS)

    repairs = Counter() if repairs is None else repairs
    trees = read_tree_files(source, repairs, wanted, ".ptb or .mrg files", style)
    return tree_docs(vocab, trees)
