"""Constituency trees in brackets: the Penn Treebank's .mrg files (Marcus et al., 1993), or files
with one tree on each line.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.archives import open_files
from spacy_psa.corpora.bracketing import read_trees
from spacy_psa.corpora.lines import decode_lines, read_lines
from spacy_psa.corpora.make_doc import make_doc
from spacy_psa.corpora.sections import section_of
from spacy_psa.corpora.trees import Parsed


def read_treebank(
    source: Path, repairs: Counter[str], sections: Collection[int] | None = None
) -> Iterator[tuple[str, Parsed]]:
    """Yield the document and the tree of each sentence of the .mrg files in a folder or archive.

    `source` may also be a single file. Empty elements are removed and labels are bare, see
    `TreeBuilder`.

    Args:
        source: the folder, archive or file.
        repairs: counts the repairs, see `read_trees`.
        sections: reads only the files of these sections of the Wall Street Journal, by the number
            in the file name; None reads all files.

    Raises:
        InputError: if there are no such files, or if one does not contain bracketed trees.
    """

    def wanted(name: str) -> bool:
        chosen = sections is None or section_of(PurePosixPath(name).stem) in sections
        return name.endswith((".mrg", ".mrg.gz")) and chosen

    what = ".mrg files" if sections is None else ".mrg files of those sections"
    for name, stream in open_files(source, wanted, what):
        document = PurePosixPath(name.removesuffix(".gz")).stem
        # Blanks at the end of a line belong to the format, so they are not counted as repairs.
        lines = decode_lines(name, (line.rstrip() + b"\n" for line in stream), repairs)
        for _, parsed in read_trees(name, lines, repairs, clean=True):
            yield document, parsed


def read_docs(
    source: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    sections: Collection[int] | None = None,
) -> Iterator[Doc]:
    """Yield one `Doc` for each tree of the Penn Treebank, see `read_treebank`.

    The part of speech is in `token.tag_`. Constituents are in `doc.spans["constituents"]` in
    preorder, with a span for each constituent of a unary chain. The document (wsj_0001) is in
    `doc.user_data["document"]`. Words are unescaped.

    Args:
        source: the folder, archive or file.
        vocab: the vocabulary of the docs.
        repairs: counts the repairs, if given.
        sections: see `read_treebank`.

    Raises:
        InputError: as `read_treebank`.
    """
    trees = read_treebank(source, Counter() if repairs is None else repairs, sections)
    for document, parsed in trees:
        doc = make_doc(vocab, parsed.words, parsed.tags, constituents=parsed.constituents)
        doc.user_data["document"] = document
        yield doc


def read_bracket_docs(
    path: Path, vocab: Vocab, repairs: Counter[str] | None = None
) -> Iterator[Doc]:
    """Yield one `Doc` for each line, which contains one bracketed tree; its labels are kept.

    The layers of a `Doc` are those of `read_docs`, without the document.

    Args:
        path: the file, plain or .gz.
        vocab: the vocabulary of the docs.
        repairs: counts the repairs, if given.

    Raises:
        InputError: if a line is not exactly one bracketed tree, or has an empty element.
    """
    repairs = Counter() if repairs is None else repairs
    trees = read_trees(str(path), read_lines(path, repairs), repairs, one_a_line=True)
    for _, parsed in trees:
        yield make_doc(vocab, parsed.words, parsed.tags, constituents=parsed.constituents)
