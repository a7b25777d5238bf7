"""Translates the constituents on docs into trees of a chart, and back.

`doc.spans["constituents"]` holds the constituents of all sentences in preorder. A unary chain is
several spans with equal offsets, the outermost first. The root of a treebank's trees (TOP, ROOT,
S1) is not listed.

A chart has the n words of one sentence, its fenceposts 0 … n, and one label for each span. Hence:

- A unary chain is one label in the chart: an S over a VP is "S VP". The separator is a blank, which
  no label of a treebank can hold, since a blank ends the label there.
- The whole sentence always has a label in the chart; if it is not a constituent, this label is TOP.
- Tokens of white space are not words. A constituent reaches from its first to its last word, with
  the white space between them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Span

from spacy_psa.corpora.trees import ROOTS, SPELLINGS, build_tree
from spacy_psa.errors import InputError
from spacy_psa.sentences import Bounds, sentence_bounds, words_and_spaces

if TYPE_CHECKING:
    from nltk import Tree

KEY = "constituents"
JOIN = " "
FLAT = "TOP"
NO_TAG = "X"
LABEL = re.compile(r"[^\s()]+")
"""The labels that a bracketed tree can hold."""

Node = tuple[int, int, str]
"""Start, end and label of a constituent, over tokens; or over fenceposts, with a chain's label."""


class Sentence(NamedTuple):
    """A sentence of a doc."""

    start: int
    """The first token."""
    end: int
    """The token after the last one."""
    words: NDArray[numpy.int64]
    """(n,) int64, the tokens that are words, as numbers of tokens of the doc."""

    @property
    def length(self) -> int:
        """The number of tokens, white space included."""
        return self.end - self.start


def word_sentences(
    doc: Doc, bounds: Bounds | None = None, letters: NDArray[numpy.int64] | None = None
) -> list[Sentence]:
    """Find the sentences of a doc, or those with the bounds, and their words, if they have any.

    The `letters_before` of the doc may be given.
    """
    words = numpy.flatnonzero(numpy.diff(letters_before(doc) if letters is None else letters))
    bounds = sentence_bounds(doc) if bounds is None else bounds
    cuts = numpy.searchsorted(words, bounds).tolist()
    return [Sentence(*bound, words[a:b]) for bound, (a, b) in zip(bounds, cuts)]


def gold_trees(reference: Doc, predicted: Doc, key: str = KEY) -> list[list[Node] | None]:
    """Read the gold tree of each sentence of a predicted doc, over its words.

    The tokens of the two docs may differ. A constituent that begins or ends inside a predicted
    token is left out.

    Args:
        reference: the doc with gold constituents.
        predicted: the doc with the sentences.
        key: the span group with the constituents.

    Returns:
        For each sentence the nodes of its tree in preorder, with the labels of unary chains
        joined; None if the reference has no trees, or no sentence of exactly these words.
    """
    ours = letters_before(predicted)
    sentences = word_sentences(predicted, letters=ours)
    if key not in reference.spans:
        return [None] * len(sentences)
    theirs = letters_before(reference)
    bounds = sentence_bounds(reference)
    known = {
        (int(theirs[start]), int(theirs[end])): nodes
        for (start, end), nodes in zip(
            bounds,
            nested(reference, list(reference.spans[key]), theirs, bounds, "correct the data"),
        )
    }
    gold: list[list[Node] | None] = []
    for start, end, words in sentences:
        nodes = known.get((int(ours[start]), int(ours[end]))) if len(words) else None
        post = {int(letter): i for i, letter in enumerate([*ours[words], ours[end]])}
        gold.append(None if nodes is None else _collapse(nodes, post))
    return gold


def single_labels(labels: Iterable[str]) -> set[str]:
    """Collect the labels of constituents that the chains of a chart are made of."""
    return {label for chain in labels for label in chain.split(JOIN)}


def token_nodes(nodes: Iterable[Node], words: NDArray[numpy.int64]) -> list[list[Node]]:
    """Translate the labelled spans of a chart into constituents over tokens.

    Returns:
        The members of the chain of each span, the outermost first; none for a sentence that is not
        a constituent.
    """
    tokens, members = words.tolist(), []
    for start, end, chain in nodes:
        is_flat = chain == FLAT and (start, end) == (0, len(tokens))
        labels = [] if is_flat else chain.split(JOIN)
        members.append([(tokens[start], tokens[end - 1] + 1, label) for label in labels])
    return members


def bracketed(doc: Doc, words: NDArray[numpy.int64], nodes: Iterable[Node]) -> Tree:
    """Make the nltk tree of constituents.

    If no constituent covers all words, TOP is the root.

    Args:
        doc: the doc. Its words and tags are the leaves; a token without a tag has the tag X.
    """
    numbers = words.tolist()
    tokens = [doc[i] for i in numbers]
    first, last = numbers[0], numbers[-1] + 1
    place = numpy.searchsorted(words, numpy.arange(first, last + 1)).tolist()
    inside = [
        (place[max(start, first) - first], place[min(end, last) - first], label)
        for start, end, label in nodes
    ]
    tags = [token.tag_ or NO_TAG for token in tokens]
    spellings = doc.user_data.get(SPELLINGS)
    return build_tree([token.text for token in tokens], tags, inside, spellings)


def named(doc: Doc) -> str:
    """Name a doc in a message: its document, if that is known, and how the doc begins."""
    document = doc.user_data.get("document")
    text = " ".join(doc.text[:200].split())
    begin = repr(text if len(text) <= 40 else f"{text[:37]}...")
    return f"{document}: {begin}" if isinstance(document, str) else begin


def letters_before(doc: Doc) -> NDArray[numpy.int64]:
    """Count the characters that are not white space before each token, and in all: (n + 1,)."""
    words, _ = words_and_spaces(doc)
    return numpy.cumsum([0, *[len("".join(word.split())) for word in words]])


def nested(
    doc: Doc,
    constituents: Iterable[Span],
    letters: NDArray[numpy.int64],
    bounds: Bounds,
    remedy: str,
    labelled: bool = True,
) -> list[list[Node]]:
    """Check the constituents of each sentence, and collect them in preorder.

    Args:
        constituents: the constituents, of a unary chain the outermost first.
        letters: the `letters_before` of the doc.
        labelled: whether each constituent must have a label.

    Returns:
        For each sentence its constituents, with offsets counted in letters.
    """
    before = letters.tolist()  # single items of arrays take longer
    ends = [before[end] for _, end in bounds]
    nodes_of: list[list[Node]] = [[] for _ in bounds]
    spans = [(before[s.start], before[s.end], s) for s in constituents]
    # The sort is stable, so the members of a chain keep their order.
    ordered = sorted(spans, key=lambda item: (item[0], -item[1]))
    above: list[tuple[int, str]] = []
    for start, end, span in ordered:
        if start == end:  # only white space
            continue
        label = span.label_
        sentence = bisect_right(ends, start)
        while above and above[-1][0] <= start:
            above.pop()
        wrong = ""
        if (labelled or label) and not LABEL.fullmatch(label):
            wrong = "has a label that is empty, or holds a blank or a bracket"
        elif end > ends[sentence]:
            wrong = "crosses the end of its sentence"
        elif above and end > above[-1][0]:
            wrong = f"crosses the constituent {above[-1][1]!r}"
        if wrong:
            what = f"the constituent {label!r} over {span.text!r}"
            raise InputError(f"{named(doc)}: {what} {wrong}; {remedy}")
        above.append((end, label))
        nodes_of[sentence].append((start, end, label))
    return nodes_of


def chains_of(doc: Doc, bounds: Bounds, constituents: Iterable[Span], remedy: str) -> list[Node]:
    """List the constituents of a doc over its tokens, unary chains joined.

    The root of a treebank's trees over a whole sentence is left out.

    Args:
        constituents: the constituents, of a unary chain the outermost first; they may have no
            label.
    """
    letters = letters_before(doc)
    sentences = word_sentences(doc, bounds, letters)
    chains: list[Node] = []
    by_sentence = nested(doc, constituents, letters, bounds, remedy, labelled=False)
    for sentence, nodes in zip(sentences, by_sentence):
        words = sentence.words.tolist()
        first = {int(letters[i]): i for i in words}
        last = {int(letters[i + 1]): i + 1 for i in words}
        whole = (words[0], words[-1] + 1) if words else None
        places = [(first[start], last[end], label) for start, end, label in nodes]
        if places and places[0][:2] == whole and places[0][2] in ROOTS:
            places = places[1:]
        for place, members in groupby(places, key=itemgetter(0, 1)):
            chains.append((*place, JOIN.join(label for *_, label in members if label)))
    return chains


def _collapse(nodes: list[Node], post: dict[int, int]) -> list[Node]:
    """Translate the constituents of a sentence, counted in letters, into a tree over fenceposts."""
    kept = [(post[a], post[b], label) for a, b, label in nodes if a in post and b in post]
    whole = (0, len(post) - 1)
    if kept and kept[0][:2] == whole and kept[0][2] in ROOTS:
        kept = kept[1:]
    chains = [
        (*span, JOIN.join(label for _, _, label in members))
        for span, members in groupby(kept, key=itemgetter(0, 1))
    ]
    return chains if chains and chains[0][:2] == whole else [(*whole, FLAT), *chains]
