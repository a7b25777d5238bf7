"""What `constituency_parser` adds to spans, tokens and docs, as users of benepar know it.

All is read from `doc.spans["constituents"]`, which must be in preorder, as the parser and
the corpora's readers write it; so it also works on docs that were saved and loaded.
`register_extensions` runs when a parser is made; call it yourself where there is none.

A node of a tree is the whole sentence, a constituent, with the labels of a unary chain
together, or a word. White space is no part of a tree: at the ends of a span it makes no
difference, and alone it has no labels, an empty string for a tree and no other nodes.
"""

import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Span, SpanGroup, Token

from spacy_psa.corpora.trees import escape
from spacy_psa.pipeline.parser.constituents import FLAT, KEY, NO_TAG, bracketed, word_sentences

if TYPE_CHECKING:
    from nltk import Tree


class NonConstituentException(ValueError):
    """The span is no constituent of its sentence's tree."""


def register_extensions() -> None:
    """Add `Span._.labels`, `.parse_string`, `.constituents`, `.parent`, `.children` and
    `.constituent_confidence`, the same to tokens, and `Doc._.parse_trees`.

    An attribute of that name which somebody else added stays, with a warning.
    """
    getters = (labels, parse_string, constituents, parent, children, constituent_confidence)
    for getter in getters:
        _register(Span, getter.__name__, getter)
        _register(Token, getter.__name__, partial(_on_token, getter))
    _register(Doc, "parse_trees", parse_trees)


def labels(span: Span) -> tuple[str, ...]:
    """The labels over just these words, the outermost first: none for a word or a sentence
    that is no constituent.

    Raises NonConstituentException for other words that are no constituent.
    """
    node = _node(span)
    return () if node is None else tuple(span.doc.spans[KEY][i].label_ for i in _chain(node))


def parse_string(span: Span) -> str:
    """The subtree in brackets on one line, with tags (X where a token has none), brackets
    in words escaped (-LRB-), and TOP for a sentence that is no constituent.

    Raises NonConstituentException as `labels`.
    """
    node = _node(span)
    if node is None:
        return ""
    words = [token for token in node if token.text.strip()]
    found = [f"({escape(token.tag_ or NO_TAG)} {escape(token.text)})" for token in words]
    place = {token.i: i for i, token in enumerate(words)}
    nodes = [(c.start, c.end, c.label_) for c in _below(node)]
    if len(words) > 1 and not _chain(node):
        nodes.insert(0, (node.start, node.end, FLAT))
    for start, end, label in reversed(nodes):  # from inside out
        found[place[start]] = f"({label} {found[place[start]]}"
        found[place[end - 1]] += ")"
    return " ".join(found)


def constituents(span: Span) -> Iterator[Span]:
    """The nodes of the subtree in preorder, each once, itself first.

    Raises NonConstituentException as `labels`.
    """
    node = _node(span)
    return iter(()) if node is None else _subtree(node)


def children(span: Span) -> Iterator[Span]:
    """The nodes right below, from left to right; none for a word.

    Raises NonConstituentException as `labels`.
    """
    node = _node(span)
    return iter(()) if node is None else _right_below(node)


def parent(span: Span) -> Span | None:
    """The node right above; None for a sentence.

    Raises NonConstituentException as `labels`.
    """
    node = _node(span)
    if node is None or _same(node, sentence := _sentence(node)):
        return None
    group = _group(node.doc)
    for i in range(_place(node) - 1, -1, -1):
        if group[i].start < sentence.start:
            break
        if group[i].end >= node.end:
            return node.doc[group[i].start : group[i].end]
    return sentence


def constituent_confidence(span: Span) -> float | None:
    """The posterior of the constituent with the span's label, or with the outermost label
    over its words where the span has none of these. None where the parser was not to give
    any (`confidence = true`), and for what has no label.

    Raises NonConstituentException as `labels`.
    """
    node = _node(span)
    if node is None:
        return None
    group, chain = _group(span.doc), _chain(node)
    scores = group.attrs.get("scores")
    if not chain or scores is None:
        return None
    return float(scores[next((i for i in chain if group[i].label == span.label), chain[0])])


def parse_trees(doc: Doc) -> "list[Tree]":
    """An nltk tree for each sentence that has words."""
    _group(doc)
    found = []
    for sentence in word_sentences(doc):
        if len(sentence.words):
            whole = doc[sentence.start : sentence.end]
            nodes = [(c.start, c.end, c.label_) for c in _below(whole)]
            found.append(bracketed(doc, sentence.words, nodes))
    return found


def _group(doc: Doc) -> SpanGroup:
    if KEY not in doc.spans:
        raise ValueError(
            f'the doc has no trees, doc.spans["{KEY}"]: let a constituency_parser annotate it'
        )
    return doc.spans[KEY]


def _node(span: Span) -> Span | None:
    """The span without white space at its ends; None if there is nothing else.

    Raises NonConstituentException where it is no node, ValueError where there are no trees.
    """
    _group(span.doc)
    node = _bare(span)
    if node is None or len(node) == 1 or _chain(node) or _same(node, _sentence(node)):
        return node
    raise NonConstituentException(
        f"{span.text!r} (tokens {span.start} to {span.end}) is no constituent of its tree"
    )


def _bare(span: Span) -> Span | None:
    words = [token.i for token in span if token.text.strip()]
    return span.doc[words[0] : words[-1] + 1] if words else None


def _sentence(node: Span) -> Span:
    whole = node.sent if node.doc.has_annotation("SENT_START") else node.doc[:]
    sentence = _bare(whole)
    assert sentence is not None  # it has the node's words
    return sentence


def _same(one: Span, other: Span) -> bool:
    return (one.start, one.end) == (other.start, other.end)


def _order(span: Span) -> tuple[int, int]:
    return span.start, -span.end


def _place(node: Span) -> int:
    """Where in the group the node's chain stands, or would stand."""
    return bisect_left(_group(node.doc), _order(node), key=_order)


def _chain(node: Span) -> list[int]:
    """The places in the group of the constituents over just these words."""
    group, first = _group(node.doc), _place(node)
    last = first
    while last < len(group) and _same(group[last], node):
        last += 1
    return list(range(first, last))


def _below(node: Span) -> list[Span]:
    """The constituents from the node's chain on that are within it, in preorder."""
    group, found = _group(node.doc), []
    for i in range(_place(node), len(group)):
        if group[i].start >= node.end:
            break
        found.append(group[i])
    return found


def _subtree(node: Span) -> Iterator[Span]:
    offsets = {(c.start, c.end) for c in [node, *_below(node)]}
    offsets |= {(token.i, token.i + 1) for token in node if token.text.strip()}
    for start, end in sorted(offsets, key=lambda offset: (offset[0], -offset[1])):
        yield node.doc[start:end]


def _right_below(node: Span) -> Iterator[Span]:
    done = node.start
    for part in _subtree(node):
        if part.start >= done and not _same(part, node):
            yield part
            done = part.end


def _on_token(getter: Callable[[Span], Any], token: Token) -> Any:
    return getter(token.doc[token.i : token.i + 1])


def _register(kind: Any, name: str, getter: Callable) -> None:
    if not kind.has_extension(name):
        kind.set_extension(name, getter=getter)
        return
    held = kind.get_extension(name)[2]
    if getattr(held, "func", held) is not getattr(getter, "func", getter):
        warnings.warn(
            f"{kind.__name__}._.{name} is another package's, and stays so: "
            f"spacy_psa.pipeline.parser.extensions.{name} gives ours",
            stacklevel=3,
        )
