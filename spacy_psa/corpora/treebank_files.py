"""Bracketed trees in the files of a folder or archive, read as one treebank."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.archives import open_files
from spacy_psa.corpora.bracketing import read_trees
from spacy_psa.corpora.lines import decode_lines
from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.tree_style import TreeStyle
from spacy_psa.corpora.trees import Parsed

Lines = Iterable[tuple[int, str]]


def read_tree_files(
    source: Path,
    repairs: Counter[str],
    wanted: Callable[[str], bool],
    what: str,
    style: TreeStyle,
    without_markup: Callable[[str, Lines], Lines] = lambda name, lines: lines,
) -> Iterator[tuple[str, Parsed]]:
    """Yield the document, which is the name of its file, and the tree of each sentence.

    Args:
        source: a folder, an archive or a single file.
        repairs: counts the repairs, see `read_trees`.
        wanted: tells by its path whether a file of a folder or an archive is read.
        what: what `wanted` looks for, for the error message.
        style: what is kept of the trees.
        without_markup: gets the name and the numbered lines of a file and gives those of its trees.

    Raises:
        InputError: if there are no such files, or if one does not contain bracketed trees.
    """
    for name, document, lines in open_documents(source, wanted, what, repairs):
        for _, parsed in read_trees(name, without_markup(name, lines), repairs, style):
            yield document, parsed


def open_documents(
    source: Path, wanted: Callable[[str], bool], what: str, repairs: Counter[str]
) -> Iterator[tuple[str, str, Lines]]:
    """Open the files of a treebank in turn; yield name, document and numbered lines of each.

    Args:
        source: a folder, an archive or a single file.
        wanted: tells by its path whether a file of a folder or an archive is read.
        what: what `wanted` looks for, for the error message.
        repairs: counts the repaired lines.

    Raises:
        InputError: if there are no such files.
    """
    for name, stream in open_files(source, wanted, what):
        document = PurePosixPath(name.removesuffix(".gz")).stem
        # Blanks at the end of a line belong to the format, so they are not counted as repairs.
        stripped = (line.rstrip() + b"\n" for line in stream)
        yield name, document, decode_lines(name, stripped, repairs)


def tree_docs(vocab: Vocab, trees: Iterable[tuple[str, Parsed]]) -> Iterator[Doc]:
    """Yield one `Doc` for each tree.

    The part of speech is in `token.tag_`. Constituents are in `doc.spans["constituents"]` in
    preorder, with a span for each constituent of a unary chain. The document is in
    `doc.user_data["document"]`.

    Examples:
        >>> trees = [("wsj_0001", Parsed(["Yes"], ["UH"], [(0, 1, "S")]))]
        >>> [doc] = tree_docs(Vocab(), trees)
        >>> doc.spans["constituents"], doc.user_data["document"]
        ([Yes], 'wsj_0001')
    """
    for document, (words, tags, constituents) in trees:
        doc = make_doc(vocab, words, tags, constituents=constituents)
        doc.user_data["document"] = document
        yield doc
