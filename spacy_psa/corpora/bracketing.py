"""Constituency trees bracket by bracket, without recursion or a tree in memory.

Constituents come in the order that `trees` describes: preorder, the outermost of
a unary chain first, the root (TOP, ROOT, S1 or no label) left out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from spacy_psa.corpora.tag_schemes import Span
from spacy_psa.corpora.trees import BRACKETS, ROOTS, Parsed
from spacy_psa.errors import InputError

TOKENS = re.compile(r"[()]|[^() \t]+")
_BRACKETS = re.compile("|".join(map(re.escape, BRACKETS)))
_DECORATION = re.compile(r"[-=|]")
EMPTY = "-NONE-"


class BracketError(ValueError):
    """Brackets, labels and words that form no tree."""


def unescape(word: str) -> str:
    r"""The word of the text: -LRB- is (, \/ is /, \* is *, also inside words."""
    if "-" in word:
        word = _BRACKETS.sub(lambda found: BRACKETS[found[0]], word)
    return word.replace("\\/", "/").replace("\\*", "*")


def bare(label: str) -> str:
    """The category alone: NP-SBJ-1 and NP=2 are NP, and ADVP|PRT, an annotator's doubt, is ADVP.

    EVALB holds ADVP and PRT equal. Labels that begin with a dash (-LRB-) are kept.
    """
    return label if label.startswith("-") else _DECORATION.split(label, maxsplit=1)[0]


class TreeBuilder:
    """Collects one tree after the other.

    Args:
        clean: leave out empty elements (-NONE-) and the constituents that they
            leave empty, take the bare labels, and make one constituent of several
            with one label over the same words, as those where a trace stood
            (NP over NP) are. This is the usual preparation of the Penn Treebank.
        keep_empty: take empty elements for words, and trees without a word, as "(())",
            for trees. This is what a scorer needs, which counts sentences.
    """

    def __init__(self, clean: bool = False, keep_empty: bool = False) -> None:
        self.clean = clean
        self.keep_empty = keep_empty
        self._parsed = Parsed([], [], [])
        # Of each open bracket: label, first word, place of its constituent.
        self._open: list[tuple[str, int, int]] = []

    @property
    def depth(self) -> int:
        """How many brackets are open; a tree is complete when it is 0 again."""
        return len(self._open)

    def open(self, label: str) -> None:
        """An opening bracket. Raises BracketError for a second tree, or a node without label."""
        if not self._open and self._parsed.words:
            raise BracketError("a second tree begins where the first has ended")
        if not label and self._open:
            raise BracketError("a node inside the tree has no label")
        self._open.append((label, len(self._parsed.words), len(self._parsed.constituents)))

    def leaf(self, tag: str, word: str) -> None:
        """A word and its part of speech. Raises BracketError for a trace that is not cleaned."""
        if tag == EMPTY and not self.keep_empty:
            if self.clean:
                return
            raise BracketError(f"{word!r} is an empty element, which only `convert ptb` removes")
        self._parsed.words.append(unescape(word))
        self._parsed.tags.append(bare(tag) if self.clean else tag)

    def close(self) -> None:
        """A closing bracket. Raises BracketError where none is open."""
        if not self._open:
            raise BracketError("a closing bracket too many")
        label, start, place = self._open.pop()
        words, _, constituents = self._parsed
        if start == len(words) or (not self._open and label in ROOTS):
            return
        span: Span = (start, len(words), bare(label) if self.clean else label)
        if not (self.clean and constituents[place : place + 1] == [span]):
            constituents.insert(place, span)

    def finish(self) -> Parsed:
        """The tree; the next one may begin. Raises BracketError where it is not closed."""
        if self._open:
            raise BracketError(f"{len(self._open)} bracket(s) are not closed")
        done, self._parsed = self._parsed, Parsed([], [], [])
        return done


class _Tokens:
    """Tells a label from a part of speech, which only the token after it shows."""

    def __init__(self, builder: TreeBuilder) -> None:
        self.builder = builder
        self.pending: list[str] = []  # "(", "( label" or "( tag word"

    def inside(self) -> bool:
        """Whether a tree has begun and not ended."""
        return bool(self.pending or self.builder.depth)

    def take(self, token: str) -> None:
        pending = self.pending
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
                raise BracketError(f"the node {' '.join(pending)}) is empty")
            elif not pending:
                self.builder.close()
            self.pending = []
        elif not pending:
            raise BracketError(f"{token!r} stands where a bracket is due")
        elif len(pending) == 3:
            raise BracketError(f"two words, {pending[2]!r} and {token!r}, in one bracket")
        else:
            pending.append(token)


def read_trees(
    name: str,
    lines: Iterable[tuple[int, str]],
    repairs: Counter[str],
    clean: bool = False,
    one_a_line: bool = False,
    keep_empty: bool = False,
) -> Iterator[tuple[int, Parsed]]:
    """Yield (line where it begins, tree), streaming.

    Trees without words are left out and counted in `repairs`, unless `keep_empty`.

    Args:
        name: of the file, for errors.
        lines: as `decode_lines` yields them.
        clean, keep_empty: see `TreeBuilder`.
        one_a_line: a tree must end on its line, alone; else it may take several.

    Raises:
        InputError: what stands there is no bracketed tree, with the line.
    """
    builder = TreeBuilder(clean, keep_empty)
    tokens = _Tokens(builder)
    begin, number, found = 0, 1, False
    try:
        for number, text in lines:
            for token in TOKENS.findall(text):
                if not tokens.inside():
                    if one_a_line and begin == number and token == "(":
                        raise BracketError("more than one tree on the line")
                    begin = number
                tokens.take(token)
                if not tokens.inside():
                    parsed = builder.finish()
                    found = True
                    if parsed.words or keep_empty:
                        yield begin, parsed
                    else:
                        repairs["tree(s) without words left out"] += 1
            if one_a_line and tokens.inside():
                raise BracketError("the tree is not closed on its line; has it several?")
        if tokens.inside():
            number = begin
            raise BracketError("the tree that begins here is not closed")
    except BracketError as error:
        since = "" if begin == number else f", in the tree of line {begin}"
        raise InputError(
            f"{name}:{number}: {error}{since}; correct it or convert as another format"
        ) from error
    if not found:
        raise InputError(f"{name}:1: no trees in the file; check that it is complete")
