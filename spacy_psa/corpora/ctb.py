"""The Penn Chinese Treebank (Xue et al., 2005): brackets between lines of mark-up.

Files are named by document and genre, such as chtb_0001.fid (version 5) or chtb_0001.nw (9.0). A
sentence stands between `<S ID=1>` and `</S>`, or directly in the file.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.lines import LATIN
from spacy_psa.corpora.tree_style import PENN, TreeStyle
from spacy_psa.corpora.treebank_files import Lines, read_tree_files, tree_docs
from spacy_psa.errors import InputError

GENRES = (".fid", ".nw", ".mz", ".bn", ".bc", ".wb", ".df", ".sc", ".cs")
LAST = 9999
_NUMBER = re.compile(r"chtb_(\d+)")
_MARKUP = re.compile(r"\s*<(/?\w+)")


def read_docs(
    source: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    files: Collection[int] | None = None,
    style: TreeStyle = PENN,
) -> Iterator[Doc]:
    """Yield one `Doc` for each tree of the bracketed files in a folder or archive.

    The layers of a `Doc` are those of `tree_docs`. Empty elements are removed, and labels are bare.

    Args:
        source: the folder or archive, or a single file of any name.
        vocab: the vocabulary of the docs.
        repairs: counts the repairs, if given.
        files: reads only the files with these numbers, 1 for chtb_0001; None reads all.
        style: what is kept of the trees.

    Raises:
        InputError: if there are no such files, or if one is not UTF-8 or does not contain
            bracketed trees.
    """

    def wanted(name: str) -> bool:
        number = _NUMBER.match(PurePosixPath(name).name)
        chosen = files is None or (number is not None and int(number[1]) in files)
        return name.removesuffix(".gz").endswith(GENRES) and chosen

    counts: Counter[str] = Counter() if repairs is None else repairs

    def in_unicode(name: str, lines: Lines) -> Lines:
        for number, text in sentences(lines):
            if counts[LATIN]:
                raise InputError(
                    f"{name}:{number}: not UTF-8, as in early versions of the treebank; "
                    "convert the files: iconv -f GB18030 -t UTF-8"
                )
            yield number, text

    what = "files such as chtb_0001.nw or .fid" + (" with those numbers" if files else "")
    return tree_docs(vocab, read_tree_files(source, counts, wanted, what, style, in_unicode))


def sentences(lines: Lines) -> Lines:
    """Yield the lines of the trees, without mark-up and the text of headers.

    Examples:
        >>> lines = ["<DATE>", "1998", "</DATE>", "<S ID=1>", "( (IP (VV 来) (PU <)))", "</S>"]
        >>> list(sentences(enumerate(lines, 1)))
        [(5, '( (IP (VV 来) (PU <)))')]
    """
    depth, element = 0, "S"
    for number, text in lines:
        markup = _MARKUP.match(text) if not depth else None
        if markup:
            element = markup[1].upper()
        elif depth or element in ("S", "/S") or text.lstrip().startswith("("):
            # Words have no brackets of this kind.
            depth = max(0, depth + text.count("(") - text.count(")"))
            yield number, text
