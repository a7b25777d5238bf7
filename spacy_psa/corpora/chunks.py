"""Chunks from trees of the Penn Treebank, by the rules that made those of CoNLL-2000.

Tjong Kim Sang and Buchholz, 2000 (Introduction to the CoNLL-2000 shared task: chunking) made the
chunks of the shared task with Buchholz's program chunklink. In short, a chunk is the words of a
constituent up to its head. Verbs below each other are one chunk, and adverbs between them belong to
it. A possessive 's begins the noun phrase after it.
"""

import re
from typing import NamedTuple

from spacy_psa.corpora.bracketing import bare
from spacy_psa.corpora.head_rules import tree_nodes
from spacy_psa.corpora.tag_schemes import Span
from spacy_psa.corpora.trees import Parsed

TYPES = frozenset({"ADJP", "ADVP", "CONJP", "INTJ", "LST", "NP", "PP", "PRT", "SBAR", "UCP", "VP"})
"""The labels of chunks; phrases with wh-words are the same without WH."""
DISSOLVED = frozenset({"NAC", "QP", "NX", "X", "NML"})
"""Constituents whose words belong to the one around them."""
BEFORE_HEAD = {
    ("NP", "ADJP"), ("NP", "UCP"), ("WHNP", "WHADJP"), ("ADJP", "ADVP"),
}  # fmt: skip
"""Constituents, by the one around them, that are dissolved unless one of its own kind is before."""
_HEAD_TAGS = {
    "ADJP": "JJ|RB|VB|IN|UH|FW|RP|[$]|#|DT|NN",
    "ADVP": "RB|IN|TO|DT|PDT|JJ|RP|FW|LS|UH|CC|NN|CD|VB",
    "CONJP": "CC|IN|RB",
    "INTJ": "UH|RB|NN|VB|FW|JJ",
    "LST": "LS|JJ|:",
    "NP": "NN|CD|PRP|JJ|DT|EX|IN|RB|VB|FW|SYM|UH|WP|WDT",
    "PP": "IN|TO|RB|VBG|VBN|JJ|RP|CC|FW",
    "PRT": "RP|IN|RB|JJ",
    "SBAR": "IN|WDT",
    "UCP": "JJ|NN|VB|CD",
    "VP": "VB|MD|TO|JJ|NN|POS|FW|SYM",
    "WHADJP": "JJ",
    "WHADVP": "WRB|IN|RB|WDT",
    "WHNP": "WDT|WP|CD|DT|IN|NN|JJ|RB",
    "WHPP": "IN|TO",
}
HEAD_TAGS = {label: re.compile(tags) for label, tags in _HEAD_TAGS.items()}
"""How the tags of words begin that can be the head of a constituent; the last one is."""
OWN_KIND = {"NP": ("NP", "NX"), "WHNP": ("WHNP", "NP"), "ADJP": ("ADJP",)}
"""How the labels begin of constituents inside another that are of its own kind."""


class _Word(NamedTuple):
    """A word, the constituent that it belongs to in the end, and whether it is its head."""

    place: int
    constituent: int
    label: str
    is_head: bool


def chunks(parsed: Parsed) -> list[Span]:
    """Find the chunks of a tree, in order; it has no empty elements.

    Labels have their functions (NP-SBJ); without them, a subordinate clause of purpose, for
    example, is joined to the verb before it.
    """
    spans: list[Span] = []
    words = _Words(parsed).words
    head = owner = -1  # the constituent of the last head, and of the chunk so far
    end = 0
    label = ""

    def close(start: int) -> None:
        if label:
            spans.append((start, end, label))

    for word in reversed(words):
        kind = word.label.removeprefix("WH")
        if word.is_head:
            head = word.constituent
        inside = kind if word.is_head or word.constituent == head else ""
        own = word.constituent
        if not inside and parsed.tags[word.place] == "POS":
            inside, own = "NP", owner if label == "NP" else -2
        if inside not in TYPES:
            inside = ""
        if (own, inside) != (owner, label):
            close(word.place + 1)
            end, owner, label = word.place + 1, own, inside
    close(0)
    return spans[::-1]


class _Words:
    """The words of a tree, after constituents are dissolved."""

    def __init__(self, parsed: Parsed) -> None:
        self.nodes = tree_nodes(parsed)
        self.tags = parsed.tags
        self.words: list[_Word] = []
        self.take(0)

    def take(self, place: int) -> None:
        """Add the words of a constituent, after those before it."""
        children, head = self.flattened(place)
        label = bare(self.nodes[place].label)
        for child in children:
            if child >= 0:
                self.take(child)
            else:
                self.words.append(_Word(-1 - child, place, label, child == head))

    def flattened(self, place: int) -> tuple[list[int], int | None]:
        """Return the children of a constituent after others are dissolved, and the head word."""
        label = bare(self.nodes[place].label)
        children = list(self.nodes[place].children)
        heads: list[int] = []
        adverbs: list[int] = []
        has_own_kind = False
        i = 0
        while i < len(children):
            child = children[i]
            whole = self.nodes[child].label if child >= 0 else self.tags[-1 - child]
            part = bare(whole) if child >= 0 else whole
            first = 0 < len(heads) + len(adverbs) == i  # only verbs and adverbs are before it
            if child < 0:
                if label in HEAD_TAGS and HEAD_TAGS[label].match(part):
                    heads.append(child)
                elif part.startswith("RB"):
                    adverbs.append(child)
            elif (
                part in DISSOLVED
                or ((label, part) in BEFORE_HEAD and not has_own_kind)
                or (label == "VP" and first and (part == "VP" or self.lacks_subject(whole, child)))
            ):
                children[i : i + 1] = self.nodes[child].children
                continue
            elif label == "VP" and part == "ADVP":
                adverbs.append(child)
            elif whole.startswith(OWN_KIND.get(label, ())) or (label == "NP" and "-NOM" in whole):
                has_own_kind |= not self.is_possessor(label, child, children[i + 1 : i + 2])
            i += 1
        head = heads[-1] if heads else None
        if label == "VP" and head is not None:
            last = children.index(head)
            before = [
                inner
                for child in children[:last]
                for inner in (
                    self.nodes[child].children if child in adverbs and child >= 0 else [child]
                )
            ]
            children[:last] = before
        return children, head

    def lacks_subject(self, label: str, place: int) -> bool:
        """Tell whether a constituent is a clause whose subject is empty, as after `expected`."""
        first = self.nodes[place].children[0]
        return label == "S" and first >= 0 and self.nodes[first].label == "VP"

    def is_possessor(self, label: str, place: int, after: list[int]) -> bool:
        """Tell whether a constituent ends with 's, and the noun phrase that it has follows."""
        last = self.nodes[place].children[-1]
        has = last < 0 and self.tags[-1 - last] == "POS"
        return (
            label == "NP"
            and has
            and any(child >= 0 and self.nodes[child].label.startswith("NP") for child in after)
        )
