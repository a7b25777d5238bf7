"""Bracketed constituency trees to labelled spans and back.

A constituent is (start, end, label). Constituents stand in preorder, so the
parts of a unary chain are several constituents with the same offsets, the
outermost first. Part-of-speech nodes and the root (TOP, ROOT, S1 or no label)
are no constituents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from spacy_psa.corpora.tag_schemes import Span

if TYPE_CHECKING:  # nltk takes a second to import: only when a tree is read or built
    from nltk import Tree

ROOTS = ("TOP", "ROOT", "S1", "")
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
ESCAPES = {bracket: escape for escape, bracket in BRACKETS.items()}
_BRACKET = re.compile("[][(){}]")


class Parsed(NamedTuple):
    """A tree by its parts: words with brackets unescaped, tags, constituents in preorder."""

    words: list[str]
    tags: list[str]
    constituents: list[Span]


def escape(text: str) -> str:
    """A word or a tag as it stands in a bracketed tree: -LRB- for (, also inside a word,
    and _ for white space inside it."""
    return "_".join(_BRACKET.sub(lambda found: ESCAPES[found[0]], text).split())


def parse_tree(text: str) -> Parsed:
    """Read one bracketed tree, as "(S (NP (PRP I)) (VP (VBD came)) (. .))".

    Raises:
        ValueError: the brackets do not match, a word has no part of speech, or
            a node mixes words and nodes.
    """
    from nltk import Tree

    try:
        tree = Tree.fromstring(text)
    except ValueError as error:  # nltk's message has several lines
        raise ValueError(f"no bracketed tree: {str(error).splitlines()[0]}") from error
    return take_apart(tree)


def take_apart(tree: Tree) -> Parsed:
    """As `parse_tree`, of an nltk tree whose leaves are strings."""
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
    """The tree of a sentence; under TOP where not one constituent covers it all. Words
    and tags are escaped.

    Args:
        constituents: in preorder, see the module.

    Raises:
        ValueError: constituents cross, are empty, or are not in preorder.
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
            raise ValueError(f"constituent ({start}, {end}, {label}) crosses or is out of order")
        node = Tree(label, [])
        stack[-1][2].append(node)
        stack.append((start, end, node))
    attach(len(words))
    only = root[0] if len(root) == 1 else None
    return only if only is not None and isinstance(only[0], Tree) else root
