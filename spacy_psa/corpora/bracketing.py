"""Bracketed constituency trees, read bracket by bracket, without recursion or a tree in memory.

The constituents come in the order that `spacy_psa.corpora.trees` describes: preorder, the
outermost of a unary chain first, and without the root (TOP, ROOT, S1 or no label).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from spacy_psa.corpora.tag_schemes import Span
from spacy_psa.corpora.trees import BRACKETS, ROOTS, SPELLINGS, Parsed, escape
from spacy_psa.errors import InputError

TOKENS = re.compile(r"[()]|[^() \t]+")
_BRACKETS = re.compile("|".join(map(re.escape, BRACKETS)))
EMPTY = "-NONE-"
MARKS = frozenset({"ID", "CODE", "METADATA", "COMMENT", "-DFL-"})
"""Labels and tags of what is not part of the text in Switchboard, and in the parsed corpora of
historical English and their kin."""
NOT_WORDS = "leaf/leaves that do not look like words"
FEATURES = "##"
_DECORATION = re.compile(r"[-=|]")
_INDEX = re.compile(r"[-=]\d+(?![^-=|])|\|[^-=]*")
_NUMBERED = re.compile(r"(\d+)=(.+)")
DISCONTINUOUS = "discontinuous tree(s) left out (`convert export --discontinuous raise` keeps them)"

_PREFIX = re.compile(
    r"(?:(?:[^\s()]*:)?[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf):?\s+)+|[^()\t]+\t\s*"
)

Labels = Literal["bare", "functions", "whole"]


def bare(label: str) -> str:
    """Return the category of a label without its function tags and indices.

    NP-SBJ-1 and NP=2 are NP. ADVP|PRT, where an annotator was in doubt, is ADVP; EVALB treats
    ADVP and PRT as equal. A label that begins with a dash (-LRB-) stays as it is.
    """
    return label if label.startswith("-") else _DECORATION.split(label, maxsplit=1)[0]


def with_functions(label: str) -> str:
    """Return the category of a label with its function tags: NP-SBJ of NP-SBJ-1."""
    return label if label.startswith("-") else _INDEX.sub("", label)


@dataclass(frozen=True)
class TreeStyle:
    """The parts of the trees of a treebank that are kept; by default all."""

    labels: Labels = "whole"
    """"bare" for categories only (NP), "functions" for categories and function tags (NP-SBJ),
    "whole" for unchanged labels (NP-SBJ-1)."""
    bare_tags: bool = False
    """Whether parts of speech are bare."""
    remove_empty: bool = False
    """Whether empty elements (-NONE-), and constituents that become empty without them, are left
    out; otherwise an empty element is an error."""
    merge_same: bool = False
    """Whether constituents with the same label over the same words, such as NP over NP after a
    trace is removed, become one constituent."""
    features: bool = False
    """Whether the features of the SPMRL shared tasks (NN##case=nom##) are cut off."""
    spelled: bool = False
    """Whether words stay as they are written (-LRB-), instead of those of the text."""
    roots: frozenset[str] = frozenset()
    """Labels that are not constituents at the root, besides TOP, ROOT and S1."""
    marks: frozenset[str] = frozenset()
    """Those of `MARKS` that are left out, with all below them."""
    marked: bool = False
    """Whether the trees are marked up as the parsed corpora of historical English: leaves such as
    *pro*, *T*-1 and 0 are empty elements, and a dollar sign joins the parts of a word."""
    lemmas: bool = False
    """Whether each word has its lemma after a dash (hestur-hestur)."""
    separators: str = ""
    """Further characters that end the category of a label: "*" in NP*SB. For bare labels."""

    def label(self, label: str) -> str:
        """Return the part of the label of a constituent that is kept."""
        label = self.without_features(label)
        if self.labels == "whole":
            return label
        if self.labels == "functions":
            return with_functions(label)
        label = bare(label)
        ends = [i for i, char in enumerate(label) if i and char in self.separators]
        return label[: ends[0]] if ends else label

    def tag(self, tag: str) -> str:
        """Return the part of a part of speech that is kept."""
        return bare(tag) if self.bare_tags else tag

    def without_features(self, label: str) -> str:
        """Cut the features off, if that is the style."""
        return label.split(FEATURES, maxsplit=1)[0] if self.features else label

    def is_root(self, label: str) -> bool:
        """Tell whether a constituent with this label is left out at the root."""
        return label in ROOTS or label in self.roots


AS_IS = TreeStyle()
"""Trees as they are."""
PENN = TreeStyle(
    labels="bare",
    bare_tags=True,
    remove_empty=True,
    merge_same=True,
    marks=frozenset({"CODE", "-DFL-"}),
)
"""Trees prepared as is usual for the Penn Treebank, apart from `merge_same`: standard files keep
repeats, which `replace(PENN, merge_same=False)` does. The `marks` are those of Switchboard."""
PSD = TreeStyle(labels="bare", remove_empty=True, marks=MARKS, marked=True, separators=";")
"""Trees of the parsed corpora of historical English and their kin, such as IcePaHC and Keyaki."""
SPMRL = TreeStyle(labels="bare", remove_empty=True, features=True, roots=frozenset({"VROOT"}))
"""Trees of the SPMRL shared tasks."""


class BracketError(ValueError):
    """Brackets, labels and words that do not form a tree."""


def unescape(word: str) -> str:
    r"""Return the word of the text: -LRB- is (, \/ is / and \* is *, also inside a word."""
    if "-" in word:
        word = _BRACKETS.sub(lambda match: BRACKETS[match[0]], word)
    return word.replace("\\/", "/").replace("\\*", "*")


def is_comment(line: str) -> bool:
    """Tell whether a line that is outside of trees is a comment: it begins with #, %% or *x*."""
    return line.lstrip().startswith(("#", "%%", "*x*"))


def _without_prefix(line: str, repairs: Counter[str]) -> str:
    """Return a line that is outside of trees without what may precede a tree.

    This is a number or score, a file with a number (wsj_0001.mrg:0), or anything before a tab.
    """
    line = line.lstrip(" \t")
    if line.startswith("("):
        return line
    if is_comment(line):
        repairs["comment line(s) left out"] += 1
        return ""
    prefix = _PREFIX.match(line)
    if prefix and line.startswith("(", prefix.end()):
        repairs["number(s) and names before trees left out"] += 1
        return line[prefix.end() :]
    return line


def spelling_data(words: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the entry of `doc.user_data` for words as a treebank writes them, see `SPELLINGS`.

    It is empty if `escape` writes all words in the same way.
    """
    pairs = ((unescape(word), word) for word in words)
    spellings = {word: spelled for word, spelled in pairs if escape(word) != spelled}
    return {SPELLINGS: spellings} if spellings else {}


def unescape_tag(tag: str) -> str:
    """Return the part of speech as it is outside of trees.

    A bracket inside a tag has been escaped, as in $-LRB-, while -LRB- itself is the tag of a
    bracket in the Penn Treebank.
    """
    return tag if tag in BRACKETS else _BRACKETS.sub(lambda match: BRACKETS[match[0]], tag)


class TreeBuilder:
    """Builds trees, one after the other, from brackets, labels and words.

    With `keep_empty`, empty elements count as words, and a tree without words, "(())", counts as a
    tree. A scorer needs this, because it counts sentences.
    """

    def __init__(self, style: TreeStyle = AS_IS, keep_empty: bool = False) -> None:
        self.style = style
        self.keep_empty = keep_empty
        self._parsed = Parsed([], [], [])
        # For each open bracket: its label, first word, and index in the constituents.
        self._open: list[tuple[str, int, int]] = []
        self._marks = 0  # how many of them are left out with all below them
        self.line = 0
        """The line of the file."""
        self.left_out: Counter[str] = Counter()
        """The parts left out of trees with `TreeStyle.marks` or `TreeStyle.marked`."""
        self.odd: dict[str, tuple[int, str, int]] = {}
        """For each tag of leaves that do not look like words: their number, the first, its line."""
        self.phrases: set[str] = set()
        """The labels of constituents so far."""

    @property
    def depth(self) -> int:
        """The number of open brackets; the tree is complete when it is 0 again."""
        return len(self._open)

    @property
    def at_bare_root(self) -> bool:
        """Whether a root without a label is open and nothing is in it yet."""
        return self._open == [("", 0, 0)] and not self._parsed.words

    def open(self, label: str) -> None:
        """Read an opening bracket and its label."""
        if not self._open and self._parsed.words:
            raise BracketError("a second tree begins after the end of the first")
        if not label and self._open:
            raise BracketError("a node inside the tree has no label")
        label = self.style.without_features(label)
        self.phrases.add(label)
        self._marks += label in self.style.marks
        if label in MARKS and not self._marks:
            self._note_odd(label, f"({label} ...)")
        self._open.append((label, len(self._parsed.words), len(self._parsed.constituents)))

    def leaf(self, tag: str, word: str) -> None:
        """Read a word and its part of speech; empty elements are errors unless left out or kept."""
        tag = self.style.without_features(tag)
        if tag == EMPTY and not self.keep_empty:
            if self.style.remove_empty:
                return
            raise BracketError(f"{word!r} is an empty element, which only `convert ptb` removes")
        if word.isspace():
            raise BracketError(f"the word {word!r} is white space, which cannot be a word")
        if self._marks or tag in self.style.marks:
            self.left_out["id(s), code(s) and comment(s) left out"] += 1
            return
        empty = word[0] == "*" or word == "0"
        if empty and self.style.marked and not (word == "0" and tag.startswith(("NUM", "CD"))):
            self.left_out["empty element(s) left out"] += 1
            return
        if tag in MARKS or (empty and not self.style.marked):
            self._note_odd(tag, f"({tag} {word})")
        self._parsed.words.append(word if self.style.spelled else unescape(word))
        self._parsed.tags.append(self.style.tag(unescape_tag(tag)))

    def _note_odd(self, tag: str, leaf: str) -> None:
        count, first, line = self.odd.get(tag, (0, leaf, self.line))
        self.odd[tag] = (count + 1, first, line)

    def close(self) -> None:
        """Read a closing bracket."""
        if not self._open:
            raise BracketError("there is one closing bracket too many")
        label, start, place = self._open.pop()
        self._marks -= label in self.style.marks
        words, _, constituents = self._parsed
        # A root may be below another, such as ROOT below no label.
        is_root = self.style.is_root
        if start == len(words) or (
            is_root(label) and all(is_root(above) for above, _, _ in self._open)
        ):
            return
        span: Span = (start, len(words), self.style.label(label))
        if not (self.style.merge_same and constituents[place : place + 1] == [span]):
            constituents.insert(place, span)

    def count_into(self, repairs: Counter[str], name: str) -> None:
        """Count what was left out, and leaves that do not look like words, such as (ID 2).

        A leaf such as * or 0 is not like a word if its tag is the label of a phrase. `name` is that
        of the file.
        """
        repairs.update(self.left_out)
        phrases = set(map(bare, self.phrases)) if self.odd else set()
        odd = [value for tag, value in self.odd.items() if tag in MARKS or bare(tag) in phrases]
        if odd:
            known = (what for what in repairs if what.startswith(NOT_WORDS))
            _, first, line = odd[0]
            what = f"{NOT_WORDS}, such as {first} in {name}:{line} (`convert psd` leaves them out)"
            repairs[next(known, what)] += sum(count for count, *_ in odd)

    def finish(self) -> Parsed:
        """Return the tree that is complete now; the next tree may begin."""
        if self._open:
            raise BracketError(f"{len(self._open)} bracket(s) are not closed")
        done, self._parsed = self._parsed, Parsed([], [], [])
        return done


def _numbered(words: list[str]) -> tuple[list[int], list[str]]:
    """Return the numbers and the words of a tree in discontinuous brackets, (NP (NNP 0=Ada)).

    Both are empty unless all words of the tree are numbered.
    """
    order: list[int] = []
    plain: list[str] = []
    for word in words:
        if not (match := _NUMBERED.fullmatch(word)):
            return [], []
        order.append(int(match[1]))
        plain.append(match[2])
    return (order, plain) if sorted(order) == list(range(len(words))) else ([], [])


class _Tokens:
    """Distinguishes labels from parts of speech, which only the next token shows."""

    def __init__(self, builder: TreeBuilder) -> None:
        self.builder = builder
        self.pending: list[str] = []  # ["("], ["(", label] or ["(", tag, word]
        self.no_parse = False  # whether "(()" has been read

    def inside(self) -> bool:
        """Tell whether a tree has begun and not ended."""
        return bool(self.pending or self.builder.depth)

    def take(self, token: str) -> None:
        """Read one token: a bracket, a label, a part of speech or a word.

        The tree "(())" stands for a sentence without a parse; no other node may be empty.
        """
        pending = self.pending
        if self.no_parse and token != ")":
            raise BracketError("the node () is empty")
        self.no_parse = False
        if token == "(":
            if len(pending) == 3:
                raise BracketError(f"the word {pending[2]!r} has no part of speech of its own")
            if pending:
                self.builder.open(pending[1] if len(pending) == 2 else "")
            self.pending = [token]
        elif token == ")":
            if len(pending) == 3:
                self.builder.leaf(pending[1], pending[2])
            elif pending and not self.builder.keep_empty:
                self.no_parse = pending == ["("] and self.builder.at_bare_root
                if not self.no_parse:
                    only = "".join(pending[1:])
                    what = "is not a leaf, which has a tag and a word" if only else "is empty"
                    raise BracketError(f"the node ({only}) {what}")
            elif not pending:
                self.builder.close()
            self.pending = []
        elif not pending:
            raise BracketError(f"there is {token!r} where a bracket should be")
        elif len(pending) == 3:
            raise BracketError(f"two words, {pending[2]!r} and {token!r}, in one bracket")
        else:
            pending.append(token)


def read_trees(
    name: str,
    lines: Iterable[tuple[int, str]],
    repairs: Counter[str],
    style: TreeStyle = AS_IS,
    one_a_line: bool = False,
    keep_empty: bool = False,
) -> Iterator[tuple[int, Parsed]]:
    """Yield each tree with the number of the line where it begins, as a stream.

    Comments and anything before a tree on its first line, such as its number, are left out and
    counted in `repairs`. So are trees without words, unless `keep_empty` is set, see `TreeBuilder`,
    and discontinuous ones, whose words are numbered in another order. With `one_a_line`, each line
    must be one tree; otherwise a tree may have several. `name` is the name of the file, for errors.
    """
    builder = TreeBuilder(style, keep_empty)
    tokens = _Tokens(builder)
    begin, number, empty, text = 0, 1, True, ""
    try:
        for number, text in lines:
            builder.line = number
            text = text if tokens.inside() else _without_prefix(text, repairs)
            for token in TOKENS.findall(text):
                if not tokens.inside():
                    if one_a_line and begin == number and token == "(":
                        raise BracketError("more than one tree on the line")
                    begin = number
                tokens.take(token)
                if not tokens.inside():
                    parsed = builder.finish()
                    empty = False
                    order, words = _numbered([] if keep_empty else parsed.words)
                    if order != sorted(order):
                        repairs[DISCONTINUOUS] += 1
                    elif parsed.words or keep_empty:
                        yield begin, parsed._replace(words=words) if words else parsed
                    else:
                        repairs["tree(s) without words left out"] += 1
            if one_a_line and tokens.inside():
                raise BracketError(
                    "the tree is not closed on its line, which must hold one tree (`spacy-psa "
                    "convert brackets --indented` reads trees of several lines)"
                )
        if tokens.inside():
            number = begin
            raise BracketError("the tree that begins here is not closed")
    except BracketError as error:
        escaped = re.search(r"\\[()]", text)
        hint = ": write -LRB- and -RRB- for brackets that are words" if escaped else ""
        since = "" if begin == number else f", in the tree of line {begin}"
        raise InputError(f"{name}:{number}: {error}{since}; correct the line{hint}") from error
    builder.count_into(repairs, name)
    if empty:
        raise InputError(f"{name}:1: no trees in the file; check that it is complete")
