"""Treebanks in brackets: the profile of each family, and the docs of their files.

- `ptb`: the .mrg files of the Penn Treebank (Marcus et al., 1993).
- `spmrl`: the treebanks of the SPMRL shared tasks (Seddah et al., 2013). A part of speech has
  features between two hash signs: (NN##case=nom|number=sg## Haus). The root may be VROOT.
- `ctb`: the Penn Chinese Treebank (Xue et al., 2005), with brackets between lines of mark-up. Files
  are named by document and genre, such as chtb_0001.fid (version 5) or chtb_0001.nw (9.0). A
  sentence is between `<S ID=1>` and `</S>`, or directly in the file.
- `psd`: the parsed corpora of historical English (Kroch and Taylor, 2000) and their kin, such as
  IcePaHC (Rögnvaldsson et al., 2012) and Keyaki (Butler et al., 2012). Empty elements have the tag
  of a phrase, (NP-SBJ *pro*). Sentences have ids, and codes of pages and headings. A dollar sign
  joins the parts of a word that is split: (RP á$) (VAN $sýnt).
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.archives import has_files, is_collection, open_files
from spacy_psa.corpora.bracketing import (
    AS_IS,
    PENN,
    PSD,
    SPMRL,
    TreeStyle,
    read_trees,
    spelling_data,
    unescape,
)
from spacy_psa.corpora.lines import LATIN, decode_lines, read_lines
from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.trees import Parsed
from spacy_psa.errors import InputError

Lines = Iterable[tuple[int, str]]

LAST_SECTION, LAST_FILE = 24, 9999
"""The greatest section of the Wall Street Journal, and number of a file of `ctb`."""
_WSJ = re.compile(r"wsj_(\d\d)\d\d(?!\d)", re.IGNORECASE)
_CHTB = re.compile(r"chtb_(\d+)")
_MARKUP = re.compile(r"\s*<(/?\w+)")


def section_of(document: str) -> int | None:
    """Return the section of a Wall Street Journal document: 2 of wsj_0203; None of others."""
    match = _WSJ.search(document)
    return int(match[1]) if match else None


def file_number(name: str) -> int | None:
    """Return the number of a file of the Chinese Treebank: 1 of chtb_0001.nw; None of others."""
    match = _CHTB.match(name)
    return int(match[1]) if match else None


def parse_sections(text: str) -> frozenset[int]:
    """Read the numbers of sections from text: "02-21", "22" or "0-18,24"."""
    return parse_numbers(text, "--sections", LAST_SECTION)


def parse_numbers(text: str, option: str, last: int) -> frozenset[int]:
    """Read numbers up to `last`, and ranges of them, from an option's text: "1-270,400-1151"."""
    numbers: set[int] = set()
    number = rf"(\d{{1,{len(str(last))}}})"
    for part in text.split(","):
        match = re.fullmatch(rf"\s*{number}\s*(?:-\s*{number}\s*)?", part, re.ASCII)
        if not match:
            raise InputError(f"{option} {text}: {part!r} is not a number, such as 22 or 02-21")
        first = int(match[1])
        final = int(match[2] or first)
        if not first <= final <= last:
            raise InputError(
                f"{option} {text}: {part!r} is not a range; "
                f"write numbers of 0 to {last}, the lower first"
            )
        numbers.update(range(first, final + 1))
    return frozenset(numbers)


def without_markup(name: str, lines: Lines, repairs: Counter[str]) -> Lines:
    """Yield the lines of the trees of `ctb`, without mark-up and the text of headers."""
    depth, element = 0, "S"
    for number, text in lines:
        markup = _MARKUP.match(text) if not depth else None
        if markup:
            element = markup[1].upper()
        elif depth or element in ("S", "/S") or text.lstrip().startswith("("):
            # Words have no brackets of this kind.
            depth = max(0, depth + text.count("(") - text.count(")"))
            if repairs[LATIN]:
                raise InputError(
                    f"{name}:{number}: not UTF-8, as in early versions of the treebank; "
                    "convert the files: iconv -f GB18030 -t UTF-8"
                )
            yield number, text


def without_remarks(name: str, lines: Lines, repairs: Counter[str]) -> Lines:
    """Yield the lines of `psd` without remarks, which are between /* and */, or /~* and *~/."""
    inside = False
    for number, text in lines:
        inside = inside or text.lstrip().startswith(("/*", "/~*"))
        if not inside:
            yield number, text
            continue
        repairs["line(s) of remarks left out"] += 1
        inside = not text.endswith(("*/", "*~/"))


@dataclass(frozen=True)
class Treebank:
    """How the files of a family of treebanks are read."""

    endings: tuple[str, ...]
    """The endings of the files that are read in a folder or archive, each also with .gz; those of
    `OTHER_ENDINGS` are read if there are no such files."""
    style: TreeStyle
    """The parts of the trees that are kept."""
    files: str
    """The files, for the error if there are none."""
    number: Callable[[str], int | None] = lambda name: None
    """Returns the number by which a file can be chosen, from its name."""
    selected: str = ""
    """The files that have the chosen numbers, for errors."""
    option: str = ""
    """The option with the numbers, for errors."""
    lines_of_trees: Callable[[str, Lines, Counter[str]], Lines] = lambda name, lines, repairs: lines
    """Returns the numbered lines of a file that belong to trees, from its name and all lines."""


OTHER_ENDINGS = ((".mrg", ".parse", ".tree", ".ptb", ".psd", ".prd"), (".txt",))
"""Other endings of files of trees: the first of the two groups that a folder or archive has."""

TREEBANKS = {
    "brackets": Treebank((), AS_IS, "files of trees (.mrg, .parse, .tree, .ptb, .psd, .prd, .txt)"),
    "ptb": Treebank((".mrg",), PENN, ".mrg files", section_of, "of those sections", "--sections"),
    "spmrl": Treebank((".ptb", ".mrg"), SPMRL, ".ptb or .mrg files"),
    "ctb": Treebank(
        (".fid", ".nw", ".mz", ".bn", ".bc", ".wb", ".df", ".sc", ".cs"),
        PENN,
        "files such as chtb_0001.nw or .fid",
        file_number,
        "with those numbers",
        "--files",
        without_markup,
    ),
    "psd": Treebank((".psd",), PSD, ".psd files", lines_of_trees=without_remarks),
}


def read_docs(
    family: str,
    source: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    numbers: Collection[int] | None = None,
    style: TreeStyle | None = None,
    one_a_line: bool = False,
) -> Iterator[Doc]:
    """Yield one `Doc` for each tree of the files in a folder or archive, see `tree_docs`.

    The document is the name of the file (wsj_0001). A single file may have any name. Only files
    with one of the `numbers` are read, which are the sections of the Wall Street Journal in `ptb`;
    None reads all. `style` has the parts of the trees that are kept; None for that of the family.
    With `one_a_line`, each line must be one tree; otherwise a tree may have several.
    """
    bank = TREEBANKS[family]
    counts: Counter[str] = Counter() if repairs is None else repairs

    def chosen(path: str) -> bool:
        return numbers is None or bank.number(PurePosixPath(path).name) in numbers

    def ending_with(endings: tuple[str, ...]) -> Callable[[str], bool]:
        return lambda path: path.lower().removesuffix(".gz").endswith(endings)

    groups = [bank.endings, *OTHER_ENDINGS]
    endings = next((g for g in groups if has_files(source, ending_with(g))), bank.endings)

    def wanted(path: str) -> bool:
        return ending_with(endings)(path) and chosen(path)

    if not chosen(source.name) and source.is_file() and not is_collection(source):
        raise InputError(
            f"{source}: by its name it is not {bank.selected}: leave out {bank.option}, or name "
            f"the folder of the {bank.files}"
        )

    kept = replace(style or bank.style, spelled=True)

    def trees() -> Iterator[tuple[str, Parsed]]:
        what = bank.files if numbers is None else f"{bank.files} {bank.selected}"
        for name, document, lines in open_documents(source, wanted, what, counts):
            lines = bank.lines_of_trees(name, lines, counts)
            for _, parsed in read_trees(name, lines, counts, kept, one_a_line):
                yield document, parsed

    return tree_docs(vocab, trees(), kept)


def read_bracket_docs(
    path: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    style: TreeStyle = AS_IS,
    one_a_line: bool = True,
) -> Iterator[Doc]:
    """Yield one `Doc` for each bracketed tree of a plain or .gz file, see `tree_docs`.

    With `one_a_line`, each line must be one tree; otherwise a tree may have several lines.
    """
    counts: Counter[str] = Counter() if repairs is None else repairs
    style = replace(style, spelled=True)
    trees = read_trees(str(path), read_lines(path, counts), counts, style, one_a_line)
    return tree_docs(vocab, ((None, parsed) for _, parsed in trees), style)


def open_documents(
    source: Path, wanted: Callable[[str], bool], what: str, repairs: Counter[str]
) -> Iterator[tuple[str, str, Lines]]:
    """Yield the name, the document and the numbered lines of each file, see `open_files`."""
    for name, stream in open_files(source, wanted, what):
        document = PurePosixPath(name.removesuffix(".gz")).stem
        # Blanks at the end of a line belong to the format, so they are not counted as repairs.
        stripped = (line.rstrip() + b"\n" for line in stream)
        yield name, document, decode_lines(name, stripped, repairs)


def tree_docs(
    vocab: Vocab, trees: Iterable[tuple[str | None, Parsed]], style: TreeStyle = AS_IS
) -> Iterator[Doc]:
    """Yield one `Doc` for each tree and the document that it belongs to.

    The part of speech is in `token.tag_`. Constituents are in `doc.spans["constituents"]` in
    preorder, with a span for each constituent of a unary chain. The document is in
    `doc.user_data["document"]`. If the `style` has words that are `spelled`, the doc has those of
    the text, and `spelling_data` keeps the others. Lemmas are in `token.lemma_`.
    """
    for document, (words, tags, constituents) in trees:
        pairs = [_form_and_lemma(word) if style.lemmas else (word, "") for word in words]
        forms = [form for form, _ in pairs]
        spaces = None
        if style.marked:
            joined = [a[-1] == "$" == b[0] for a, b in pairwise([*forms, " "])]
            spaces = [not join for join in joined]
            forms = [
                form[before and len(form) > 1 : -1 if join and len(form) > 1 else None]
                for form, before, join in zip(forms, [False, *joined], joined, strict=False)
            ]
        text = list(map(unescape, forms)) if style.spelled else forms
        doc = make_doc(vocab, text, tags, spaces=spaces, constituents=constituents)
        if style.spelled:
            doc.user_data.update(spelling_data(forms))
        for token, (_, lemma) in zip(doc, pairs, strict=True):
            if lemma:
                token.lemma_ = unescape(lemma)
        if document is not None:
            doc.user_data["document"] = document
        yield doc


def _form_and_lemma(word: str) -> tuple[str, str]:
    """Split a word at the dash in the middle, if it has one; form and lemma may have dashes too."""
    dashes = [i for i, char in enumerate(word) if char == "-" and 0 < i < len(word) - 1]
    if not dashes:
        return word, ""
    at = dashes[len(dashes) // 2] if len(dashes) % 2 else dashes[-1]
    return word[:at], word[at + 1 :]
