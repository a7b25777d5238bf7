"""Bracketed constituency trees, read bracket by bracket, without recursion or a tree in memory.

The constituents come in the order that `spacy_psa.corpora.trees` describes: preorder, the
outermost of a unary chain first, and without the root (TOP, ROOT, S1 or no label).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from spacy_psa.corpora.tag_schemes import Span
from spacy_psa.corpora.tree_style import AS_IS, TreeStyle
from spacy_psa.corpora.trees import BRACKETS, Parsed
from spacy_psa.errors import InputError

TOKENS = re.compile(r"[()]|[^() \t]+")
_BRACKETS = re.compile("|".join(map(re.escape, BRACKETS)))
EMPTY = "-NONE-"


class BracketError(ValueError):
    """Brackets, labels and words that do not form a tree.

    Examples:
        >>> TreeBuilder().close()
        Traceback (most recent call last):
        spacy_psa.corpora.bracketing.BracketError: there is one closing bracket too many
    """


def unescape(word: str) -> str:
    r"""Give the word as it is in the text: -LRB- is (, \/ is / and \* is *, also inside a word.

    Examples:
        >>> unescape("-LRB-415-RRB-"), unescape("1\\/2")
        ('(415)', '1/2')
    """
    if "-" in word:
        word = _BRACKETS.sub(lambda found: BRACKETS[found[0]], word)
    return word.replace("\\/", "/").replace("\\*", "*")


def unescape_tag(tag: str) -> str:
    """Give the part of speech as it is outside of trees.

    A bracket inside a tag has been escaped, while -LRB- itself is the tag of a bracket in the Penn
    Treebank.

    Examples:
        >>> unescape_tag("$-LRB-"), unescape_tag("-LRB-")
        ('$(', '-LRB-')
    """
    return tag if tag in BRACKETS else _BRACKETS.sub(lambda found: BRACKETS[found[0]], tag)


class TreeBuilder:
    """Builds trees, one after the other, from brackets, labels and words.

    Args:
        style: what is kept of the trees.
        keep_empty: whether empty elements count as words, and a tree without words, "(())", counts
            as a tree. A scorer needs this, because it counts sentences.

    Examples:
        >>> builder = TreeBuilder()
        >>> builder.open("S")
        >>> builder.leaf("UH", "Yes")
        >>> builder.close()
        >>> builder.finish()
        Parsed(words=['Yes'], tags=['UH'], constituents=[(0, 1, 'S')])
    """

    def __init__(self, style: TreeStyle = AS_IS, keep_empty: bool = False) -> None:
        self.style = style
        self.keep_empty = keep_empty
        self._parsed = Parsed([], [], [])
        # For each open bracket: its label, first word, and index in the constituents.
        self._open: list[tuple[str, int, int]] = []

    @property
    def depth(self) -> int:
        """The number of open brackets; the tree is complete when it is 0 again."""
        return len(self._open)

    @property
    def at_bare_root(self) -> bool:
        """Whether a root without a label is open and nothing is in it yet."""
        return self._open == [("", 0, 0)] and not self._parsed.words

    def open(self, label: str) -> None:
        """Take an opening bracket and its label.

        Raises:
            BracketError: if a second tree begins, or a node inside the tree has no label.
        """
        if not self._open and self._parsed.words:
            raise BracketError("a second tree begins after the end of the first")
        if not label and self._open:
            raise BracketError("a node inside the tree has no label")
        label = self.style.without_features(label)
        self._open.append((label, len(self._parsed.words), len(self._parsed.constituents)))

    def leaf(self, tag: str, word: str) -> None:
        """Take a word and its part of speech.

        Raises:
            BracketError: if the word is an empty element, which neither the style removes nor
                `keep_empty` keeps, or is white space, such as a no-break space.
        """
        if tag == EMPTY and not self.keep_empty:
            if self.style.remove_empty:
                return
            raise BracketError(f"{word!r} is an empty element, which only `convert ptb` removes")
        if word.isspace():
            raise BracketError(f"the word {word!r} is white space, which is no word in a spaCy doc")
        self._parsed.words.append(unescape(word))
        self._parsed.tags.append(self.style.tag(unescape_tag(tag)))

    def close(self) -> None:
        """Take a closing bracket.

        Raises:
            BracketError: if no bracket is open.
        """
        if not self._open:
            raise BracketError("there is one closing bracket too many")
        label, start, place = self._open.pop()
        words, _, constituents = self._parsed
        if start == len(words) or self._is_root(label):
            return
        span: Span = (start, len(words), self.style.label(label))
        if not (self.style.merge_same and constituents[place : place + 1] == [span]):
            constituents.insert(place, span)

    def _is_root(self, label: str) -> bool:
        """Tell whether the constituent that closes is a root, such as ROOT below no label."""
        return all(map(self.style.is_root, [label, *(above for above, _, _ in self._open)]))

    def finish(self) -> Parsed:
        """Give the tree that is complete now; the next tree may begin.

        Raises:
            BracketError: if a bracket is still open.
        """
        if self._open:
            raise BracketError(f"{len(self._open)} bracket(s) are not closed")
        done, self._parsed = self._parsed, Parsed([], [], [])
        return done


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
        """Take one token: a bracket, a label, a part of speech or a word.

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
                    raise BracketError(f"the node ({' '.join(pending[1:])}) is empty")
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

    Trees without words are left out and counted in `repairs`, unless `keep_empty` is set.

    Args:
        name: the name of the file, for errors.
        lines: numbered lines, as `decode_lines` yields them.
        repairs: counts the repairs.
        style: what is kept of the trees.
        one_a_line: whether each tree must be alone on its line; otherwise it may take several
            lines.
        keep_empty: see `TreeBuilder`.

    Raises:
        InputError: if a line is not part of a bracketed tree, or if there are no trees.

    Examples:
        >>> lines = [(1, "(TOP (S (NP (PRP I))"), (2, "        (VP (VBD came))))")]
        >>> for line, tree in read_trees("trees.mrg", lines, Counter()):
        ...     print(line, tree.words, tree.constituents)
        1 ['I', 'came'] [(0, 2, 'S'), (0, 1, 'NP'), (1, 2, 'VP')]
    """
    builder = TreeBuilder(style, keep_empty)
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
                raise BracketError(
                    "the tree is not closed on its line, which must hold one tree (`spacy-psa "
                    "convert brackets --indented` reads trees of several lines)"
                )
        if tokens.inside():
            number = begin
            raise BracketError("the tree that begins here is not closed")
    except BracketError as error:
        since = "" if begin == number else f", in the tree of line {begin}"
        raise InputError(f"{name}:{number}: {error}{since}; correct the line") from error
    if not found:
        raise InputError(f"{name}:1: no trees in the file; check that it is complete")
