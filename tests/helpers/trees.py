"""Bracketed trees, and docs that hold them."""

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st
from nltk import Tree
from spacy.tokens import Doc, Span

from spacy_psa.corpora.trees import BRACKETS as ESCAPED
from spacy_psa.corpora.trees import ROOTS, Parsed
from spacy_psa.scoring.parseval import Totals, score_pair, total
from tests.helpers.pipelines import spans_of

# Of several kinds: a unary chain, a root that is no constituent, brackets as words, one word.
BRACKETS = [
    "(S (NP (NNP Ada)) (VP (VBD met) (NP (NNP Evans)) (PP (IN in) (NP (NNP Bath)))) (. .))",
    "(S (S (VP (VBG Reading) (NP (NNS books)))) (VP (VBZ helps) (NP (NNP Ada))) (. .))",
    "(TOP (NP (DT The) (NN letter)) (. !))",
    "(FRAG (NP (NP (NN tea)) (PRN (-LRB- -LRB-) (NP (JJ green) (NN tea)) (-RRB- -RRB-))))",
    "(TOP (UH Yes))",
    "(NP (NNP Leeds))",
]

# Gold and predicted trees whose figures are worked out by hand: of 7, 4 and 3 gold brackets and
# 6, 3 and 3 predicted ones by Collins' rules, 6, 2 and 3 match.
JUDGED = [
    (
        "(TOP (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (NP (DT a) (NN cat))"
        " (PP (IN in) (NP (NN town))))) (. .)))",
        "(TOP (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat))"
        " (PP (IN in) (NP (NNP town)))) (. .)))",
    ),
    (
        "(TOP (S (NP (PRP we)) (VP (VBD gave) (PRT (RP up)))))",
        "(TOP (S (NP (PRP we) (VBD gave)) (ADVP (RB up))))",
    ),
    ("(TOP (S (NP (NN rain)) (VP (VBD fell))))", "(TOP (S (NP (NN rain)) (VP (VBD fell))))"),
]


@st.composite
def bracketings(draw: Any, depth: int = 0) -> str:
    """A random tree: unary chains, brackets as words, words beside constituents."""
    label = draw(st.sampled_from(["S", "NP", "VP"]))
    children = [
        draw(bracketings(depth + 1))
        if depth < 4 and draw(st.booleans())
        else draw(st.sampled_from(["(NN dog)", "(-LRB- -LRB-)", "(VB see)"]))
        for _ in range(draw(st.integers(1, 3)))
    ]
    return f"({label} {' '.join(children)})"


def parse_tree(text: str) -> Parsed:
    """Read one bracketed tree by nltk; a ValueError if it is broken."""
    parsed = Parsed([], [], [])

    def visit(node: Any, root: bool) -> None:
        if isinstance(node, str) or not len(node):
            raise ValueError(f"{node!r} is a word without a part of speech, or an empty node")
        if len(node) == 1 and isinstance(node[0], str):
            parsed.words.append(ESCAPED.get(node[0], node[0]))
            parsed.tags.append(node.label())
            return
        place, start = len(parsed.constituents), len(parsed.words)
        for child in node:
            visit(child, False)
        if not (root and node.label() in ROOTS):
            parsed.constituents.insert(place, (start, len(parsed.words), node.label()))

    visit(Tree.fromstring(text), True)
    return parsed


def parseval(pairs: Iterable[tuple[Parsed, Parsed]], max_length: int | None = None) -> Totals:
    """The figures of pairs of a gold and a predicted tree."""
    return total((score_pair(gold, test) for gold, test in pairs), max_length)


def flat(tree: Any) -> str:
    """An nltk tree on one line."""
    return " ".join(str(tree).split())


def constituents(doc: Doc) -> list[tuple[int, int, str]]:
    return spans_of(doc.spans["constituents"])


def tree_doc(vocab: Any, *brackets: str, key: str = "constituents") -> Doc:
    """One Doc of the trees' sentences, with boundaries."""
    words, tags, starts, spans = [], [], [], []
    for text in brackets:
        parsed = parse_tree(text)
        first = len(words)
        spans += [(first + s, first + e, label) for s, e, label in parsed.constituents]
        starts += [i == 0 for i in range(len(parsed.words))]
        words, tags = words + parsed.words, tags + parsed.tags
    doc = Doc(vocab, words=words, tags=tags, sent_starts=starts)
    doc.spans[key] = [Span(doc, *span) for span in spans]
    return doc
