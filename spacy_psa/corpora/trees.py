"""Constituency trees as labelled spans, and the brackets that write them.

A constituent is (start, end, label). Constituents are in preorder: the parts of a unary chain
are several constituents with the same offsets, the outermost first. Part-of-speech nodes and
the root (TOP, ROOT, S1 or no label) are not constituents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from spacy_psa.corpora.tag_schemes import Span

if TYPE_CHECKING:  # importing nltk costs a second, so it is imported only when needed
    from nltk import Tree

ROOTS = ("TOP", "ROOT", "S1", "")
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
ESCAPES = {bracket: escape for escape, bracket in BRACKETS.items()}
_PARENTHESIS = re.compile("[()]")
SPELLINGS = "spellings"
"""The key in `doc.user_data` of the words that a treebank escapes in another way than `escape`.

They are {word of the text: word of the tree}, such as {"7/8": "7\\/8"}. One word has one spelling
in a doc, so that parts of the doc, and other tokens, keep it."""


class Parsed(NamedTuple):
    """The parts of a tree: unescaped words, parts of speech, and constituents in preorder."""

    words: list[str]
    tags: list[str]
    constituents: list[Span]


@lru_cache(maxsize=2**14)
def escape(text: str) -> str:
    """Write a word or a tag for a bracketed tree.

    A bracket becomes its escape (-LRB- for an opening parenthesis). Inside a word only parentheses
    are escaped, as other brackets do not end a word. White space inside a word becomes _: nltk and
    others would end the word there.
    """
    if text in ESCAPES:
        return ESCAPES[text]
    return "_".join(_PARENTHESIS.sub(lambda match: ESCAPES[match[0]], text).split())


def build_tree(
    words: Sequence[str],
    tags: Sequence[str],
    constituents: Iterable[Span],
    spellings: Mapping[str, str] | None = None,
) -> Tree:
    """Build the nltk tree of a sentence of n words.

    The root is TOP, unless one constituent covers the whole sentence. Words and tags are escaped.

    Args:
        words: (n,) the words.
        tags: (n,) their parts of speech.
        constituents: (start, end, label) in preorder; the first of several with the same offsets is
            the outermost.
        spellings: the words that are escaped in another way, see `SPELLINGS`.

    Raises:
        ValueError: if constituents cross, are empty, or are not in preorder.
    """
    from nltk import Tree

    root = Tree("TOP", [])
    stack: list[tuple[int, int, Tree]] = [(0, len(words), root)]
    spelled = spellings or {}
    done = 0  # words attached so far

    def attach(until: int) -> None:
        nonlocal done
        while done < until:
            while stack[-1][1] <= done:
                stack.pop()
            stop = min(until, stack[-1][1])
            for i in range(done, stop):
                stack[-1][2].append(
                    Tree(escape(tags[i]), [spelled.get(words[i]) or escape(words[i])])
                )
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
