"""Constituency trees in brackets: the Penn Treebank's .mrg files (Marcus et al., 1993), or files
with one tree on each line.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.archives import is_collection
from spacy_psa.corpora.bracketing import read_trees
from spacy_psa.corpora.lines import read_lines
from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.sections import section_of
from spacy_psa.corpora.tree_style import AS_IS, PENN, TreeStyle
from spacy_psa.corpora.treebank_files import read_tree_files, tree_docs
from spacy_psa.errors import InputError

ENDINGS = (".mrg", ".mrg.gz")


def read_docs(
    source: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    sections: Collection[int] | None = None,
    style: TreeStyle = PENN,
) -> Iterator[Doc]:
    """Yield one `Doc` for each tree of the .mrg files in a folder or archive, see `tree_docs`.

    Empty elements are removed, labels are bare, and words are unescaped. The document is the name
    of the file (wsj_0001).

    Args:
        source: the folder or archive, or a single file of any name.
        vocab: the vocabulary of the docs.
        repairs: counts the repairs, if given.
        sections: reads only the files of these sections of the Wall Street Journal, by the number
            in the file name, also that of a single file; None reads all files.
        style: what is kept of the trees.

    Raises:
        InputError: if there are no such files, if one does not contain bracketed trees, or if a
            single file is of another section by its name.
    """
    of_others = sections is not None and section_of(source.name) not in sections
    if of_others and source.is_file() and not is_collection(source):
        raise InputError(
            f"{source}: by its name it is not of these sections: leave out --sections, or give the "
            "folder of the .mrg files"
        )

    def wanted(name: str) -> bool:
        chosen = sections is None or section_of(PurePosixPath(name).stem) in sections
        return name.lower().endswith(ENDINGS) and chosen

    what = ".mrg files" if sections is None else ".mrg files of those sections"
    repairs = Counter() if repairs is None else repairs
    return tree_docs(vocab, read_tree_files(source, repairs, wanted, what, style))


def read_bracket_docs(
    path: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    style: TreeStyle = AS_IS,
    one_a_line: bool = True,
) -> Iterator[Doc]:
    """Yield one `Doc` for each bracketed tree of a file.

    The layers of a `Doc` are those of `tree_docs`, without the document.

    Args:
        path: the file, plain or .gz.
        vocab: the vocabulary of the docs.
        repairs: counts the repairs, if given.
        style: what is kept of the trees; by default all.
        one_a_line: whether each line must be one tree; otherwise a tree may take several lines.

    Raises:
        InputError: if a line is not exactly one bracketed tree, or has an empty element.
    """
    repairs = Counter() if repairs is None else repairs
    lines = read_lines(path, repairs)
    for _, parsed in read_trees(str(path), lines, repairs, style, one_a_line):
        yield make_doc(vocab, parsed.words, parsed.tags, constituents=parsed.constituents)
