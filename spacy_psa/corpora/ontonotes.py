"""OntoNotes 5 in the format of the CoNLL-2012 shared task (Pradhan et al., 2012).

A document begins with `#begin document (ID); part N`. Four of its columns are read: word, part
of speech, tree and names.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.archives import open_files
from spacy_psa.corpora.bracketing import BracketError, TreeBuilder
from spacy_psa.corpora.columns import Row
from spacy_psa.corpora.lines import BLANKS, decode_lines
from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.tag_schemes import Span
from spacy_psa.corpora.treebanks import section_of
from spacy_psa.corpora.trees import Parsed
from spacy_psa.errors import InputError

COLUMNS = 12
"""The least number of columns.

They are document, part, number, word, part of speech, tree, 4 others, names, coreference."""
BEGIN = re.compile(r"#begin document \((.+)\); part (\d{1,9})(?!\d)")
NAMES = re.compile(r"(?:\(([^()*]+))?(?:\*(\)?)|(\)))")
PUNCTUATION = {"/.": ".", "/?": "?", "/-": "-"}
"""Punctuation that transcripts of speech escape, because it would otherwise end a sentence."""
NEW_TESTAMENT = "pt/nt/"


def read_docs(
    source: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    folder: str = "",
    sections: Collection[int] | None = None,
    new_testament: bool = False,
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence of the *_conll files of a folder or archive, or of a file.

    The part of speech is in `token.tag_`, and names are in `doc.ents`. Constituents are in
    `doc.spans["constituents"]` in preorder, with a span for each constituent of a unary chain. The
    document ("nw/wsj/02/wsj_0203") and its part, from 0, are in `doc.user_data` under "document"
    and "part". Words are unescaped. Files with predicted layers (*_auto_conll) are left out.

    Args:
        folder: reads only the files below this folder ("v4/data/train"); "" reads all.
        sections: reads only the Wall Street Journal documents of these sections; None reads all
            documents.
        new_testament: whether to also read the documents of the New Testament, which have no names.
    """

    def wanted(name: str) -> bool:
        below = f"/{folder.strip('/')}/" in f"/{name}" if folder.strip("/") else True
        return below and name.endswith(("_conll", "_conll.gz")) and "auto_conll" not in name

    def chosen(document: str) -> bool:
        testament = not new_testament and document.startswith(NEW_TESTAMENT)
        return not testament and (sections is None or section_of(document) in sections)

    empty = True
    where = f" below {folder}" if folder else ""
    for name, stream in open_files(source, wanted, f"*_conll files{where}"):
        lines = decode_lines(name, stream, Counter() if repairs is None else repairs)
        for document, part, rows in _read_file(name, lines, chosen):
            empty = False
            (words, tags, constituents), names = _read_layers(name, rows)
            doc = make_doc(vocab, words, tags, names, constituents=constituents)
            doc.user_data.update(document=document, part=part)
            yield doc
    if empty:
        raise InputError(
            f"{source}: no document is chosen; leave out --sections or add --new-testament"
        )


def _read_file(
    name: str, lines: Iterable[tuple[int, str]], chosen: Callable[[str], bool]
) -> Iterator[tuple[str, int, list[Row]]]:
    """Yield the document, the part and the rows of each sentence in the chosen documents."""
    document, before, part, skip, has_words = "", "", 0, False, False
    rows: list[Row] = []
    number = 1
    for number, text in lines:
        if text.startswith("#") or not text:
            if rows:
                yield document, part, rows
                rows = []
            if text.startswith("#end"):
                if document and not has_words:
                    raise InputError(
                        f"{name}:{number}: the document {document} has no words; get the file again"
                    )
                document = ""
            begin = BEGIN.match(text)
            if begin and document:
                raise InputError(
                    f"{name}:{number}: the document before, {document}, has no '#end document' "
                    "line; add it"
                )
            if begin:
                last, part = part, int(begin[2])
                if begin[1] == before and part != last + 1:
                    raise InputError(
                        f"{name}:{number}: part {part} of {before} follows part {last}; "
                        "a part is missing, or there is one too many"
                    )
                document = before = begin[1]
                skip, has_words = not chosen(document), False
            continue
        if not document:
            raise InputError(
                f"{name}:{number}: there is no '#begin document' line before this line, but a "
                "CoNLL-2012 file must have one; check the format"
            )
        has_words = True
        if skip:
            continue
        columns = BLANKS.split(text.lstrip(" \t"), maxsplit=COLUMNS - 1)
        if len(columns) < COLUMNS:
            raise InputError(
                f"{name}:{number}: {len(columns)} columns instead of {COLUMNS} or more; "
                "correct the line"
            )
        if columns[2] != str(len(rows)):
            raise InputError(
                f"{name}:{number}: the word number is {columns[2]!r} instead of {len(rows)}; "
                "a line or an empty line is missing, or there is one too many"
            )
        rows.append(Row(number, columns))
    if document or rows:
        raise InputError(f"{name}:{number}: no '#end document' line; the file is cut off")


def _read_layers(name: str, rows: list[Row]) -> tuple[Parsed, list[Span]]:
    builder = TreeBuilder()
    names: list[Span] = []
    start, label = 0, ""
    row = rows[0]
    try:
        for i, row in enumerate(rows):
            _, _, _, word, tag, tree, *_, name_bits, _ = row.columns
            if word == "[WORD]":
                raise BracketError(
                    "the file has no words; fill them in from OntoNotes with "
                    "skeleton2conll of the shared task"
                )
            _take_bits(builder, tree, tag, PUNCTUATION.get(word, word))
            bits = NAMES.fullmatch(name_bits)
            opens, closes = (bits[1], bits[2] or bits[3]) if bits else (None, None)
            if not bits or (opens and label) or (closes and not (opens or label)):
                state = f"inside of {label}" if label else "outside of a name"
                raise BracketError(f"names column: {name_bits!r} is not possible {state}")
            if opens:
                start, label = i, opens
            if closes:
                names.append((start, i + 1, label))
                label = ""
        if label:
            raise BracketError(f"names column: {label} is not closed")
        return builder.finish(), names
    except BracketError as error:
        raise InputError(f"{name}:{row.line}: {error}; correct the file") from error


def _take_bits(builder: TreeBuilder, bits: str, tag: str, word: str) -> None:
    """Add a word; `bits` is the tree column, "(NP(NP*" or "*))", where the star is the word."""
    before, star, after = bits.partition("*")
    if not star or before[:1] not in ("", "(") or after.strip(")"):
        raise BracketError(f"tree column: {bits!r} does not have exactly one * for the word")
    for label in before.split("(")[1:]:
        builder.open(label)
    if not builder.depth:
        raise BracketError(f"tree column: the word {word!r} is outside the tree")
    builder.leaf(tag, word)
    for _ in after:
        builder.close()
