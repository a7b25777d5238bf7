"""The attributes that `constituency_parser` adds to spans, tokens and docs, as in benepar.

They are all read from `doc.spans["constituents"]`, so they work on saved docs too. The functions of
this module read another span group if they are given its `key`. `register_extensions` is called
when a parser is made; call it yourself if there is no parser.

Trees follow when tokens are merged or split after parsing. Sentence boundaries that are set or
moved after parsing may cut a constituent, and spans that are put among the constituents may cross
others. Then there is no tree, and the attributes raise a ValueError that names the constituent.

The functions raise a ValueError if the doc has no trees, and a `NonConstituentException` if a span
has several words that are not a constituent.

A node of a tree is the whole sentence, a constituent together with all labels of its unary chain,
or a word. White space is not part of a tree. At the ends of a span it makes no difference. A span
of white space has no labels and no other nodes, and its tree is an empty string.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, Token

from spacy_psa.corpora.bracketing import bare
from spacy_psa.corpora.trees import SPELLINGS, escape
from spacy_psa.pipeline.parser.constituents import FLAT, KEY, NO_TAG, bracketed, word_sentences
from spacy_psa.pipeline.parser.heads import head_token
from spacy_psa.pipeline.parser.sentence_tree import (
    NonConstituentException,
    SentenceTree,
    in_order,
    node_and_tree,
    same,
)
from spacy_psa.pipeline.parser.tree_drawing import Trees
from spacy_psa.pipeline.written import group_scores, noted_score

__all__ = [
    "NonConstituentException",
    "children",
    "constituent_confidence",
    "constituents",
    "head_token",
    "labels",
    "noun_chunks",
    "parent",
    "parse_string",
    "parse_trees",
    "register_extensions",
    "remove_extensions",
]


def register_extensions() -> None:
    """Add the attributes of trees to spans, tokens and docs.

    `Span._.labels`, `.parse_string`, `.constituents`, `.parent`, `.children`,
    `.constituent_confidence` and `.head_token`, the same for tokens, and `Doc._.parse_trees` and
    `Doc._.noun_chunks` call the functions of this module with these names. If benepar has
    registered its attributes before, they answer for the docs that have no constituents of ours.
    Any other attribute with one of these names stays, with a warning.
    """
    for getter in GETTERS:
        _register(Span, getter.__name__, getter)
        _register(Token, getter.__name__, partial(_on_token, getter))
    _register(Doc, "parse_trees", parse_trees)
    _register(Doc, "noun_chunks", noun_chunks)


def remove_extensions() -> None:
    """Remove the attributes that `register_extensions` added.

    benepar cannot be imported while there are attributes of its names. So call this function,
    import benepar, and call `register_extensions` again.
    """
    for kind in (Span, Token):
        for getter in GETTERS:
            _remove(kind, getter)
    _remove(Doc, parse_trees)
    _remove(Doc, noun_chunks)


def labels(span: Span, key: str = KEY) -> tuple[str, ...]:
    """List the labels over exactly the words of a span, the outermost first.

    A single word or a whole sentence that is not a constituent has no labels.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [
        ...     Span(doc, *node) for node in [(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]
        ... ]
        >>> labels(doc[1:3])
        ('VP',)
    """
    node, tree = node_and_tree(span, key)
    return tuple(tree.spans[i].label_ for i in tree.chain(node)) if tree else ()


def parse_string(span: Span, key: str = KEY) -> str:
    """Write the subtree of a span in brackets on one line.

    The tag of a token without one is X. Brackets in words are escaped (-LRB-), and
    words of a treebank are spelled as there. A sentence that is
    not a constituent is put under TOP.
    """
    node, tree = node_and_tree(span, key)
    if tree is None:
        return ""
    words = [token for token in node if token.text.strip()]
    spelled = node.doc.user_data.get(SPELLINGS, {})
    brackets = [
        f"({escape(token.tag_ or NO_TAG)} {spelled.get(token.text) or escape(token.text)})"
        for token in words
    ]
    place = {token.i: i for i, token in enumerate(words)}
    nodes = [(c.start, c.end, c.label_) for c in tree.below(node)]
    if same(node, tree.sentence) and not tree.chain(node):
        nodes.insert(0, (node.start, node.end, FLAT))
    for start, end, label in reversed(nodes):  # from the inside out
        brackets[place[start]] = f"({label} {brackets[place[start]]}"
        brackets[place[end - 1]] += ")"
    return " ".join(brackets)


def constituents(span: Span, key: str = KEY) -> Iterator[Span]:
    """Iterate over the nodes of the subtree of a span in preorder, each once, the span first."""
    node, tree = node_and_tree(span, key)
    return tree.subtree(node) if tree else iter(())


def children(span: Span, key: str = KEY) -> Iterator[Span]:
    """Iterate over the nodes right below a span, from left to right; a word has none."""
    node, tree = node_and_tree(span, key)
    return tree.right_below(node) if tree else iter(())


def parent(span: Span, key: str = KEY) -> Span | None:
    """Find the node right above a span; None for a sentence."""
    node, tree = node_and_tree(span, key)
    if tree is None or same(node, tree.sentence):
        return None
    for above in reversed(tree.spans[: tree.place(node)]):
        if above.end >= node.end:
            return node.doc[above.start : above.end]
    return tree.sentence


def constituent_confidence(span: Span, key: str = KEY) -> float | None:
    """Find the posterior of the constituent with the label of a span.

    If no constituent over its words has the label of the span, the outermost one counts.

    Returns:
        A probability; None if no constituent is over these words, or if the parser has not
        written posteriors (`confidence = true`).
    """
    node, tree = node_and_tree(span, key)
    chain = tree.chain(node) if tree else []
    if tree is None or not chain:
        return None
    place = next((i for i in chain if tree.spans[i].label == span.label), chain[0])
    scores = group_scores(span.doc.spans[key])
    if scores is not None:
        return float(scores[tree.first + place])
    return noted_score(key, tree.spans[place])


def parse_trees(doc: Doc, key: str = KEY) -> Trees:
    """Make an nltk tree for each sentence of a doc that has words.

    A notebook shows them as a drawing, if svgling is installed.

    Raises:
        ValueError: if the doc has no trees.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [
        ...     Span(doc, *node) for node in [(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]
        ... ]
        >>> (tree,) = parse_trees(doc)
        >>> print(tree)
        (S (NP (X Ada)) (VP (X met) (NP (X Bob))))
    """
    trees = Trees()
    for words, tree in _sentence_trees(doc, key):
        nodes = [(c.start, c.end, c.label_) for c in tree.spans]
        trees.append(bracketed(doc, words, nodes))
    return trees


def noun_chunks(doc: Doc, key: str = KEY) -> list[Span]:
    """List the base noun phrases of a doc, which `doc.noun_chunks` only finds with dependencies.

    They are constituents with the category NP, such as NP-SBJ, that have no other below them, apart
    from possessives: "Ada's dog" is one, as in spaCy.

    Raises:
        ValueError: if the doc has no trees.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("the end of it")
        >>> doc.spans["constituents"] = [
        ...     Span(doc, *node) for node in [(0, 4, "NP"), (0, 2, "NP"), (3, 4, "NP")]
        ... ]
        >>> noun_chunks(doc)
        [the end, it]
    """
    chunks: list[Span] = []
    for _, tree in _sentence_trees(doc, key):
        phrases = [span for span in tree.spans if bare(span.label_) == "NP"]
        for i, phrase in enumerate(phrases):
            below = (each for each in phrases[i + 1 :] if each[-1].tag_ != "POS")
            is_base = next((each.start >= phrase.end for each in below), True)
            if is_base and not (chunks and phrase.end <= chunks[-1].end):
                chunks.append(phrase)
    return chunks


def _sentence_trees(doc: Doc, key: str) -> Iterator[tuple[NDArray[numpy.int64], SentenceTree]]:
    """Read the words and the tree of each sentence that has words."""
    in_order(doc, key)
    for _, _, words in word_sentences(doc):
        if len(words):
            yield words, SentenceTree.around(doc[int(words[0]) : int(words[-1]) + 1], key)


GETTERS = (
    labels,
    parse_string,
    constituents,
    parent,
    children,
    constituent_confidence,
    head_token,
)


def _on_token(getter: Callable[..., Any], token: Token) -> Any:
    return getter(token.doc[token.i : token.i + 1])


def _register(kind: Any, name: str, getter: Callable) -> None:
    held = kind.get_extension(name)[2] if kind.has_extension(name) else None
    if not kind.has_extension(name):
        kind.set_extension(name, getter=getter)
    elif held is not None and _of_benepar(held):
        kind.set_extension(name, getter=_BesideBenepar(getter, held), force=True)
    elif _bottom(held) is not _bottom(getter):
        warnings.warn(
            f"{kind.__name__}._.{name} is another package's attribute and stays as it is: "
            f"call spacy_psa.pipeline.parser.extensions.{name} instead",
            stacklevel=3,
        )


def _remove(kind: Any, getter: Callable) -> None:
    name = getter.__name__
    held = kind.get_extension(name)[2] if kind.has_extension(name) else None
    if isinstance(held, _BesideBenepar):
        kind.set_extension(name, getter=held.theirs, force=True)
    elif _bottom(held) is getter:
        kind.remove_extension(name)


def _bottom(getter: Any) -> Any:
    """Find the function of this module that an attribute calls."""
    if isinstance(getter, _BesideBenepar):
        getter = getter.ours
    return getter.args[0] if isinstance(getter, partial) else getter


def _of_benepar(getter: Any) -> bool:
    return str(getattr(getter, "__module__", "")).partition(".")[0] == "benepar"


class _BesideBenepar:
    """Answers for docs with our constituents; benepar answers for all others."""

    def __init__(self, ours: Callable, theirs: Callable) -> None:
        self.ours, self.theirs = ours, theirs

    def __call__(self, item: Any) -> Any:
        doc = item if isinstance(item, Doc) else item.doc
        return (self.ours if KEY in doc.spans else self.theirs)(item)
