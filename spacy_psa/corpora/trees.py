"""Converts bracketed constituency trees to labelled spans and back.

A constituent is (start, end, label). Constituents are in preorder: the parts of a unary chain
are several constituents with the same offsets, the outermost first. Part-of-speech nodes and
the root (TOP, ROOT, S1 or no label) are not constituents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from spacy_psa.corpora.tag_schemes import Span

if TYPE_CHECKING:  # nltk takes a second to import, so it is imported only when needed
    from nltk import Tree

ROOTS = ("TOP", "ROOT", "S1", "")
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
ESCAPES = {bracket: escape for escape, bracket in BRACKETS.items()}
_BRACKET = re.compile("[][(){}]")


class Parsed(NamedTuple):
    """The parts of a tree: unescaped words, parts of speech, and constituents in preorder.

    Examples:
        >>> parse_tree("(TOP (S (UH Yes)))")
        Parsed(words=['Yes'], tags=['UH'], constituents=[(0, 1, 'S')])
    """

    words: list[str]
    tags: list[str]
    constituents: list[Span]


@lru_cache(maxsize=2**14)
def escape(text: str) -> str:
    """Write a word or a tag as it stands in a bracketed tree.

    A bracket becomes its escape (-LRB- for an opening parenthesis), also inside a word, and white
    space inside a word becomes _: nltk and others would end the word there.

    Examples:
        >>> escape("(415)"), escape("New York")
        ('-LRB-415-RRB-', 'New_York')
    """
    return "_".join(_BRACKET.sub(lambda found: ESCAPES[found[0]], text).split())


def parse_tree(text: str) -> Parsed:
    """Read one bracketed tree.

    Raises:
        ValueError: if the brackets do not match, a word has no part of speech, or a node has both
            words and nodes.

    Examples:
        >>> tree = parse_tree("(S (NP (PRP I)) (VP (VBD came)) (. .))")
        >>> tree.words, tree.tags
        (['I', 'came', '.'], ['PRP', 'VBD', '.'])
        >>> tree.constituents
        [(0, 3, 'S'), (0, 1, 'NP'), (1, 2, 'VP')]
    """
    from nltk import Tree

    try:
        tree = Tree.fromstring(text)
    except ValueError as error:  # the message of nltk has several lines
        raise ValueError(f"not a bracketed tree: {str(error).splitlines()[0]}") from error
    return take_apart(tree)


def take_apart(tree: Tree) -> Parsed:
    """Give the parts of an nltk tree whose leaves are strings.

    Raises:
        ValueError: as `parse_tree`.

    Examples:
        >>> from nltk import Tree
        >>> take_apart(Tree.fromstring("(S (UH Yes))"))
        Parsed(words=['Yes'], tags=['UH'], constituents=[(0, 1, 'S')])
    """
    parsed = Parsed([], [], [])

    def visit(node: Tree | str, root: bool) -> None:
        if isinstance(node, str):
            raise ValueError(f"the word {node!r} has no part of speech of its own")
        if not len(node):
            raise ValueError(f"the node {node.label()!r} is empty")
        if len(node) == 1 and isinstance(node[0], str):
            parsed.words.append(BRACKETS.get(node[0], node[0]))
            parsed.tags.append(node.label())
            return
        place = len(parsed.constituents)
        start = len(parsed.words)
        for child in node:
            visit(child, False)
        if not (root and node.label() in ROOTS):
            parsed.constituents.insert(place, (start, len(parsed.words), node.label()))

    visit(tree, True)
    return parsed


def build_tree(words: Sequence[str], tags: Sequence[str], constituents: Iterable[Span]) -> Tree:
    """Build the nltk tree of a sentence of n words.

    The root is TOP, unless one constituent covers the whole sentence. Words and tags are escaped.

    Args:
        words: (n,) the words.
        tags: (n,) their parts of speech.
        constituents: (start, end, label) in preorder; the first of several with the same offsets is
            the outermost.

    Raises:
        ValueError: if constituents cross, are empty, or are not in preorder.

    Examples:
        >>> constituents = [(0, 2, "S"), (0, 1, "NP"), (1, 2, "VP")]
        >>> print(build_tree(["I", "came"], ["PRP", "VBD"], constituents))
        (S (NP (PRP I)) (VP (VBD came)))
    """
    from nltk import Tree

    root = Tree("TOP", [])
    stack: list[tuple[int, int, Tree]] = [(0, len(words), root)]
    done = 0  # words attached so far

    def attach(until: int) -> None:
        nonlocal done
        while done < until:
            while stack[-1][1] <= done:
                stack.pop()
            stop = min(until, stack[-1][1])
            for i in range(done, stop):
                stack[-1][2].append(Tree(escape(tags[i]), [escape(words[i])]))
            done = stop

    for start, end, label in constituents:
        attach(start)
        while len(stack) > 1 and stack[-1][1] <= start:
            stack.pop()
        if not (done == start < end <= stack[-1][1]):
            raise ValueError(
                f"constituent ({start}, {end}, {label}) crosses another or is out of order"
            )
        node = Tree(label, [])
        stack[-1][2].append(node)
        stack.append((start, end, node))
    attach(len(words))
    only = root[0] if len(root) == 1 else None
    return only if only is not None and isinstance(only[0], Tree) else root
