"""Constituents on docs to the trees of a chart, and back.

`doc.spans["constituents"]` holds the constituents of all sentences in preorder; a unary
chain is several spans with equal offsets, the outermost first. The root of a treebank's
trees (TOP, ROOT, S1) is not listed.

A chart knows the n words of one sentence, its fenceposts 0 … n, and one label for each of
its spans. Hence:

- a unary chain is one label, "S VP" for an S over a VP: joined by a blank, which no label
  of a treebank can hold, since it ends there;
- the whole sentence has a label always, and where it is no constituent that label is TOP;
- tokens of white space are no words. A constituent reaches from its first to its last
  word, with what white space stands between.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_psa.corpora.trees import ROOTS, build_tree
from spacy_psa.errors import InputError
from spacy_psa.sentences import Bounds, sentence_bounds

if TYPE_CHECKING:
    from nltk import Tree

KEY = "constituents"
JOIN = " "
FLAT = "TOP"
NO_TAG = "X"

Node = tuple[int, int, str]
"""Start, end and label of a constituent: over tokens, or fenceposts and a chain's label."""


class Sentence(NamedTuple):
    """A sentence of a doc."""

    start: int
    """Its first token."""
    end: int
    """The token after its last."""
    words: NDArray[numpy.int64]
    """(n,) the tokens that are words."""


def word_sentences(doc: Doc, bounds: Bounds | None = None) -> list[Sentence]:
    """The sentences of a doc, as the model takes them; some may have no words.

    bounds: the doc's `sentence_bounds`, where they are known.
    """
    words = numpy.flatnonzero(numpy.diff(_letters(doc)))
    bounds = sentence_bounds(doc) if bounds is None else bounds
    cuts = numpy.searchsorted(words, [start for start, _ in bounds[1:]])
    return [Sentence(*bound, part) for bound, part in zip(bounds, numpy.split(words, cuts))]


def gold_trees(reference: Doc, predicted: Doc) -> list[list[Node] | None]:
    """The tree of each sentence of `predicted` over its words, in preorder, chains joined.

    None where the reference has no trees, or no sentence of just these words. Tokens may
    differ; a constituent that begins or ends inside a token is left out.

    Raises InputError, naming the doc and the words, for a constituent of the reference that
    crosses the end of a sentence or another constituent, or whose label is empty or holds a
    blank.
    """
    sentences = word_sentences(predicted)
    if KEY not in reference.spans:
        return [None] * len(sentences)
    theirs, ours = _letters(reference), _letters(predicted)
    bounds = sentence_bounds(reference)
    known = {
        (int(theirs[start]), int(theirs[end])): nodes
        for (start, end), nodes in zip(bounds, _nodes(reference, theirs, bounds))
    }
    gold: list[list[Node] | None] = []
    for start, end, words in sentences:
        nodes = known.get((int(ours[start]), int(ours[end]))) if len(words) else None
        post = {int(letter): i for i, letter in enumerate([*ours[words], ours[end]])}
        gold.append(None if nodes is None else _collapse(nodes, post))
    return gold


def token_nodes(node: Node, words: NDArray[numpy.int64]) -> list[Node]:
    """The constituents over tokens of a labelled span of the chart over `words`: the
    members of its chain, the outermost first; none for a sentence that is no constituent."""
    start, end, chain = node
    if chain == FLAT and (start, end) == (0, len(words)):
        return []
    first, last = int(words[start]), int(words[end - 1])
    return [(first, last + 1, label) for label in chain.split(JOIN)]


def bracketed(doc: Doc, words: NDArray[numpy.int64], nodes: Iterable[Node]) -> Tree:
    """The nltk tree of constituents over tokens, with the doc's words and tags, or X for a
    token without one; under TOP where not one of the constituents covers all words."""
    starts = words.tolist()
    tokens = [doc[i] for i in starts]
    inside = [
        (int(numpy.searchsorted(words, start)), int(numpy.searchsorted(words, end)), label)
        for start, end, label in nodes
    ]
    tags = [token.tag_ or NO_TAG for token in tokens]
    return build_tree([token.text for token in tokens], tags, inside)


def named(doc: Doc) -> str:
    """What a message calls a doc: its document, where that is known, and how it begins."""
    document = doc.user_data.get("document")
    text = " ".join(doc.text[:200].split())
    begin = repr(text if len(text) <= 40 else f"{text[:37]}...")
    return f"{document}: {begin}" if isinstance(document, str) else begin


def _letters(doc: Doc) -> NDArray[numpy.int64]:
    """(n + 1,) the characters before each token, and in all, that are no white space."""
    sizes = [0, *(len("".join(token.text.split())) for token in doc)]
    return numpy.cumsum(sizes)


def _nodes(doc: Doc, letters: NDArray[numpy.int64], bounds: list[tuple[int, int]]) -> list:
    """The constituents of each sentence in preorder, their places counted in letters."""
    ends = letters[[end for _, end in bounds]]
    found: list[list[Node]] = [[] for _ in bounds]
    spans = [(int(letters[s.start]), int(letters[s.end]), s) for s in doc.spans[KEY]]
    # Members of a chain stay in their order.
    ordered = sorted(spans, key=lambda item: (item[0], -item[1]))
    above: list[tuple[int, str]] = []
    for start, end, span in ordered:
        if start == end:  # white space alone
            continue
        label = span.label_
        sentence = int(numpy.searchsorted(ends, start, side="right"))
        while above and above[-1][0] <= start:
            above.pop()
        wrong = ""
        if not label or JOIN in label:
            wrong = "has a label that is empty or holds a blank"
        elif end > ends[sentence]:
            wrong = "crosses the end of its sentence"
        elif above and end > above[-1][0]:
            wrong = f"crosses the constituent {above[-1][1]!r}"
        if wrong:
            what = f"the constituent {label!r} over {span.text!r}"
            raise InputError(f"{named(doc)}: {what} {wrong}; correct the data")
        above.append((end, label))
        found[sentence].append((start, end, label))
    return found


def _collapse(nodes: list[Node], post: dict[int, int]) -> list[Node]:
    """The tree over fenceposts, `post` by letter."""
    kept = [(post[a], post[b], label) for a, b, label in nodes if a in post and b in post]
    whole = (0, len(post) - 1)
    if kept and kept[0][:2] == whole and kept[0][2] in ROOTS:
        kept = kept[1:]
    chains = [
        (*span, JOIN.join(label for _, _, label in members))
        for span, members in groupby(kept, key=itemgetter(0, 1))
    ]
    return chains if chains and chains[0][:2] == whole else [(*whole, FLAT), *chains]
