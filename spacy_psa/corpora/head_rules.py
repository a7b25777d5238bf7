"""Head rules: which child of a constituent has its head word, and the dependencies that follow.

`collins` is Table A.1 of Collins1999 (Head-Driven Statistical Models for Natural Language Parsing,
PhD thesis, University of Pennsylvania, appendix A), for the labels of the Penn Treebank.
`universal` needs no labels of a certain treebank.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from spacy_psa.corpora.bracketing import bare
from spacy_psa.corpora.trees import Parsed

Choose = Callable[[str, Sequence[str]], int]
"""Returns the place of the head, from the label of a constituent and those of its children."""
Side = Literal["left", "right"]

ROOT = "TOP"
PUNCTUATION = frozenset(
    {"``", "''", "'", '"', ",", ":", ".", "-LRB-", "-RRB-", "HYPH", "PU", "PUNCT"}
)
CONJUNCTIONS = frozenset({"CC", "CONJP", "KON", "CCONJ", "CONJ"})
COMMAS = frozenset({",", ":", "$,", ";"})
PREDICATES = frozenset({"PRD", "PD", "ATS"})
"""The functions of predicates in English, German and French treebanks."""
KINDS = {
    "S": ("V", "S", "A", "J", "N"),
    "V": ("V", "N", "J"),
    "N": ("N", "CD", "PR", "J"),
    "A": ("J", "A", "R", "V", "N"),
    "P": ("PP", "N", "S", "V"),
    "I": ("U", "I", "V", "N"),
}
"""How the labels of heads begin by the `universal` rules, the most preferred first, by the first
letter of the parent. The heads of other parents begin with the same letter, or with V or N."""
NOMINAL = frozenset({"NP", "NX", "NML"})

# The side to begin at, and labels from the most to the least preferred.
TABLE_A1: dict[str, tuple[Side, str]] = {
    "ADJP": ("left", "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB"),
    "ADVP": ("right", "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),
    "CONJP": ("right", "CC RB IN"),
    "FRAG": ("right", ""),
    "INTJ": ("left", ""),
    "LST": ("right", "LS :"),
    "NAC": ("left", "NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW"),
    "PP": ("right", "IN TO VBG VBN RP FW"),
    "PRN": ("left", ""),
    "PRT": ("right", "RP"),
    "QP": ("left", "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS"),
    "RRC": ("right", "VP NP ADVP ADJP PP"),
    "S": ("left", "TO IN VP S SBAR ADJP UCP NP"),
    "SBAR": ("left", "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"),
    "SBARQ": ("left", "SQ S SINV SBARQ FRAG"),
    "SINV": ("left", "VBZ VBD VBP VB MD VP S SINV ADJP NP"),
    "SQ": ("left", "VBZ VBD VBP VB MD VP SQ"),
    "UCP": ("right", ""),
    "VP": ("left", "TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP"),
    "WHADJP": ("left", "CC WRB JJ ADJP"),
    "WHADVP": ("right", "CC WRB"),
    "WHNP": ("left", "WDT WP WP$ WHADJP WHPP WHNP"),
    "WHPP": ("right", "IN TO FW"),
}
# The rules of NP: any of these labels, whichever comes first from the side.
NP_RULES: tuple[tuple[Side, str], ...] = (
    ("right", "NN NNP NNPS NNS NX NML POS JJR"),
    ("left", "NP"),
    ("right", "$ ADJP PRN"),
    ("right", "CD"),
    ("right", "JJ JJS RB QP"),
)


class Heads(NamedTuple):
    """The head word of each constituent, and the word that each word depends on."""

    constituents: list[int]
    words: list[int]
    """The head of a sentence depends on itself."""
    root: int
    """The head of the sentence."""


def collins(parent: str, children: Sequence[str]) -> int:
    """Choose the head child by the rules of Collins1999, Table A.1.

    Punctuation is chosen only where there is nothing else, since Collins1999 removes it from the
    tree before. In a coordination the part before the conjunction is chosen. NX and NML, which
    the table lacks, follow the rules of NP. Of other labels, the head is the last child whose label
    begins with the same letter, or with V or N, or the last one.
    """
    parent, labels = bare(parent), [bare(child) for child in children]
    kept = _without_punctuation(labels)
    names = [labels[i] for i in kept]
    if parent in NOMINAL:
        place = _of_np(names)
    elif parent in TABLE_A1:
        side, preferred = TABLE_A1[parent]
        place = next(
            (i for label in preferred.split() if (i := _first(side, names, {label})) >= 0),
            0 if side == "left" else len(names) - 1,
        )
    else:
        kinds = (parent[:1], "V", "N", "")
        matching = ([i for i in kept if children[i].startswith(kind)] for kind in kinds)
        return next(places[-1] for places in matching if places)
    if place >= 2 and names[place - 1] in ("CC", "CONJP"):
        place -= 2
    return kept[place]


def universal(parent: str, children: Sequence[str]) -> int:
    """Choose the head child in any treebank, as Universal Dependencies choose it.

    This is the first conjunct of a coordination; else the child whose function is the predicate, as
    in NP-PRD; else the last child of the kind that the parent asks for, such as VP or VBZ in S and
    VP, NN in NP, and NP in PP; else the last one. NP in NP is the head where nothing else is
    nominal, and then the first one. Punctuation is chosen only where there is nothing else.

    Where labels have no functions, the head of a clause with a copula is the copula.
    """
    label, names = bare(parent).removeprefix("WH"), [bare(child) for child in children]
    places: Sequence[int] = _without_punctuation(names)
    if label[:1] in ("S", "V"):
        for i in places:
            if PREDICATES & {*children[i].split("-")[1:]}:
                return i
    own = label[:1]
    for kind in KINDS.get(own, (own, "V", "N")):
        if of_kind := [i for i in places if names[i].removeprefix("WH").startswith(kind)]:
            places = of_kind
            break
    places = _first_conjunct(names, places)
    if own == "N":
        nested = (label, "NX", "NML")
        return next((i for i in reversed(places) if names[i] not in nested), places[0])
    return places[-1]


def _first_conjunct(labels: Sequence[str], places: Sequence[int]) -> Sequence[int]:
    """Return the possible heads before the first conjunction or comma of a coordination."""
    conjunction = next((i for i in _conjunctions(labels) if i > places[0]), None)
    if conjunction is None:
        return places
    ends = [i for i, label in enumerate(labels) if label in COMMAS and places[0] < i < conjunction]
    return [i for i in places if i < min([*ends, conjunction])]


def _conjunctions(labels: Sequence[str]) -> list[int]:
    """Return the places of the conjunctions, apart from one that is first."""
    return [i for i in _without_punctuation(labels)[1:] if labels[i] in CONJUNCTIONS]


def find_heads(parsed: Parsed, choose: Choose = collins) -> Heads:
    """Find the heads of a tree with at least one word, by the rules `choose`.

    By the `universal` rules, a conjunction depends on the conjunct after it.
    """
    nodes = tree_nodes(parsed)
    heads, governors = [0] * len(nodes), list(range(len(parsed.words)))
    for place in reversed(range(len(nodes))):  # the lower ones first
        node = nodes[place]
        below = [heads[i] if i >= 0 else -1 - i for i in node.children]
        heads[place] = below[choose(node.label, node.labels)]
        for head in below:
            governors[head] = heads[place]
        if choose is universal:
            labels = [bare(label) for label in node.labels]
            words = _without_punctuation(labels)
            for i in _conjunctions(labels):
                after = next((j for j in words if j > i and labels[j] not in CONJUNCTIONS), i)
                if below[i] != heads[place]:
                    governors[below[i]] = below[after] if after > i else heads[place]
    return Heads(heads[1:], governors, heads[0])


def find_head(parsed: Parsed, choose: Choose = collins) -> int:
    """Find the head of a whole tree, without those of all its constituents as `find_heads`."""
    nodes = tree_nodes(parsed)
    place = 0
    while place >= 0:
        node = nodes[place]
        place = node.children[choose(node.label, node.labels)]
    return -1 - place


class Node(NamedTuple):
    """A constituent of a tree, or its root."""

    label: str
    end: int
    children: list[int]
    """A constituent by its place among the nodes, a word by -1 - word."""
    labels: list[str]
    """The label or tag of each child."""


def tree_nodes(parsed: Parsed) -> list[Node]:
    """List the root of a tree and its constituents in preorder."""
    words, tags, constituents = parsed
    nodes = [Node(ROOT, len(words), [], [])]
    around = nodes[:]
    done = 0

    def put(start: int, child: int, label: str) -> None:
        while around[-1].end <= start:
            around.pop()
        around[-1].children.append(child)
        around[-1].labels.append(label)

    def put_words(until: int) -> None:
        nonlocal done
        for word in range(done, until):
            put(word, -1 - word, tags[word])
        done = until

    for place, (start, end, label) in enumerate(constituents, 1):
        put_words(start)
        put(start, place, label)
        around.append(Node(label, end, [], []))
        nodes.append(around[-1])
    put_words(len(words))
    return nodes


def _of_np(labels: Sequence[str]) -> int:
    if labels[-1] == "POS":
        return len(labels) - 1
    places = (_first(side, labels, set(wanted.split())) for side, wanted in NP_RULES)
    return next((place for place in places if place >= 0), len(labels) - 1)


def _first(side: Side, labels: Sequence[str], wanted: set[str]) -> int:
    """Find the first wanted label from a side; -1 if there is none."""
    places = range(len(labels)) if side == "left" else reversed(range(len(labels)))
    return next((i for i in places if labels[i] in wanted), -1)


def _without_punctuation(labels: Sequence[str]) -> list[int]:
    """Return the places of children other than punctuation; all, if there are no others."""
    return [
        i
        for i, label in enumerate(labels)
        # The tag $ is that of currency; in STTS, punctuation is $, and $. and $(.
        if label not in PUNCTUATION and not (label.startswith("$") and len(label) > 1)
    ] or list(range(len(labels)))
