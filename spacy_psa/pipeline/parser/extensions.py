"""The attributes that `constituency_parser` adds to spans, tokens and docs, as in benepar.

They are all read from `doc.spans["constituents"]`, which must be in preorder, as the parser and the
readers of corpora write it. So they work on saved docs too. `register_extensions` is called when a
parser is made; call it yourself if there is no parser.

Sentence boundaries that are set or moved after parsing may cut a constituent, and spans that are
put among the constituents may cross others. Then there is no tree, and the attributes raise a
ValueError that names the constituent.

A node of a tree is the whole sentence, a constituent together with all labels of its unary chain,
or a word. White space is not part of a tree. At the ends of a span it makes no difference. A span
of white space alone has no labels and no other nodes, and its tree is an empty string.
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
    """Raised for a span that is no constituent of its sentence's tree.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [Span(doc, 0, 3, "S")]
        >>> try:
        ...     labels(doc[1:3])
        ... except NonConstituentException as error:
        ...     print(error)
        'met Bob' (tokens 1 to 3) is not a constituent of its tree
    """


def register_extensions() -> None:
    """Add the attributes of trees to spans, tokens and docs.

    `Span._.labels`, `.parse_string`, `.constituents`, `.parent`, `.children` and
    `.constituent_confidence`, the same for tokens, and `Doc._.parse_trees` call the functions of
    this module with these names. If there is another attribute with one of these names, it stays,
    and a warning says so.

    Examples:
        >>> register_extensions()
        >>> Span.has_extension("labels"), Doc.has_extension("parse_trees")
        (True, True)
    """
    getters = (labels, parse_string, constituents, parent, children, constituent_confidence)
    for getter in getters:
        _register(Span, getter.__name__, getter)
        _register(Token, getter.__name__, partial(_on_token, getter))
    _register(Doc, "parse_trees", parse_trees)


def labels(span: Span) -> tuple[str, ...]:
    """List the labels over exactly the words of a span, the outermost first.

    A single word or a whole sentence that is no constituent has no labels.

    Raises:
        NonConstituentException: if the span has several words that are no constituent.
        ValueError: if the doc has no trees.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [
        ...     Span(doc, *node) for node in [(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]
        ... ]
        >>> labels(doc[1:3])
        ('VP',)
    """
    node = _node(span)
    return () if node is None else tuple(span.doc.spans[KEY][i].label_ for i in _chain(node))


def parse_string(span: Span) -> str:
    """Write the subtree of a span in brackets on one line.

    The tag of a token without one is X. Brackets in words are escaped (-LRB-). A sentence that is
    no constituent is put under TOP.

    Raises:
        NonConstituentException: if the span has several words that are no constituent.
        ValueError: if the doc has no trees.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [
        ...     Span(doc, *node) for node in [(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]
        ... ]
        >>> parse_string(doc[1:3])
        '(VP (X met) (NP (X Bob)))'
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
    for start, end, label in reversed(nodes):  # from the inside out
        found[place[start]] = f"({label} {found[place[start]]}"
        found[place[end - 1]] += ")"
    return " ".join(found)


def constituents(span: Span) -> Iterator[Span]:
    """Iterate over the nodes of the subtree of a span in preorder, each once, the span first.

    Raises:
        NonConstituentException: if the span has several words that are no constituent.
        ValueError: if the doc has no trees.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [
        ...     Span(doc, *node) for node in [(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]
        ... ]
        >>> list(constituents(doc[1:3]))
        [met Bob, met, Bob]
    """
    node = _node(span)
    return iter(()) if node is None else _subtree(node)


def children(span: Span) -> Iterator[Span]:
    """Iterate over the nodes right below a span, from left to right; a word has none.

    Raises:
        NonConstituentException: if the span has several words that are no constituent.
        ValueError: if the doc has no trees.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [
        ...     Span(doc, *node) for node in [(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]
        ... ]
        >>> list(children(doc[0:3]))
        [Ada, met Bob]
    """
    node = _node(span)
    return iter(()) if node is None else _right_below(node)


def parent(span: Span) -> Span | None:
    """Find the node right above a span; None for a sentence.

    Raises:
        NonConstituentException: if the span has several words that are no constituent.
        ValueError: if the doc has no trees.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [
        ...     Span(doc, *node) for node in [(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]
        ... ]
        >>> parent(doc[2:3])
        met Bob
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
    """Find the posterior of the constituent with the label of a span.

    If no constituent over its words has the label of the span, the outermost one counts.

    Returns:
        A probability; None if no constituent is over these words, or if the parser has not
        written posteriors (`confidence = true`).

    Raises:
        NonConstituentException: if the span has several words that are no constituent.
        ValueError: if the doc has no trees.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [
        ...     Span(doc, *node) for node in [(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]
        ... ]
        >>> doc.spans["constituents"].attrs["scores"] = [0.9, 0.8, 0.7, 0.6]
        >>> constituent_confidence(doc[1:3])
        0.7
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
    """Make an nltk tree for each sentence of a doc that has words.

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
    _group(doc)
    found = []
    for sentence in word_sentences(doc):
        if len(sentence.words):
            whole = doc[sentence.start : sentence.end]
            _check_tree(whole)
            nodes = [(c.start, c.end, c.label_) for c in _below(whole)]
            found.append(bracketed(doc, sentence.words, nodes))
    return found


def _group(doc: Doc) -> SpanGroup:
    if KEY not in doc.spans:
        raise ValueError(
            f'the doc has no trees in doc.spans["{KEY}"]: annotate it with a constituency_parser'
        )
    return doc.spans[KEY]


def _node(span: Span) -> Span | None:
    """Cut white space off the ends of a span; None if there is nothing else.

    Raises:
        NonConstituentException: if the result is no node.
        ValueError: if the doc has no trees, or if the constituents of the sentence are no tree.
    """
    _group(span.doc)
    node = _bare(span)
    if node is None:
        return None
    sentence = _sentence(node)
    _check_tree(sentence)
    if len(node) == 1 or _chain(node) or _same(node, sentence):
        return node
    raise NonConstituentException(
        f"{span.text!r} (tokens {span.start} to {span.end}) is not a constituent of its tree"
    )


def _bare(span: Span) -> Span | None:
    words = [token.i for token in span if token.text.strip()]
    return span.doc[words[0] : words[-1] + 1] if words else None


def _sentence(node: Span) -> Span:
    whole = node.sent if node.doc.has_annotation("SENT_START") else node.doc[:]
    sentence = _bare(whole)
    assert sentence is not None  # it has the words of the node
    return sentence


def _check_tree(sentence: Span) -> None:
    """Check that the constituents of a sentence are nested, and within it.

    Raises:
        ValueError: if they are not.
    """
    group, first = _group(sentence.doc), _place(sentence)
    if first and group[first - 1].end > sentence.start:
        raise _crossing(group[first - 1], f"the start of the sentence {sentence.text!r}")
    around = [sentence]
    for i in range(first, len(group)):
        node = group[i]
        if node.start >= sentence.end:
            return
        if node.end > sentence.end:
            raise _crossing(node, f"the end of the sentence {sentence.text!r}")
        while around[-1].end <= node.start:
            around.pop()
        if node.end > around[-1].end or _order(node) < _order(around[-1]):
            raise _crossing(node, f"the constituent {around[-1].text!r}")
        around.append(node)


def _crossing(node: Span, what: str) -> ValueError:
    return ValueError(
        f"the constituent {node.text!r} (tokens {node.start} to {node.end}) crosses {what}: "
        "set sentence boundaries before the doc is parsed, and give constituents that are nested"
    )


def _same(one: Span, other: Span) -> bool:
    return (one.start, one.end) == (other.start, other.end)


def _order(span: Span) -> tuple[int, int]:
    return span.start, -span.end


def _place(node: Span) -> int:
    """Find the index in the span group at which the chain of a node begins, or would begin."""
    return bisect_left(_group(node.doc), _order(node), key=_order)


def _chain(node: Span) -> list[int]:
    """Find the indices in the span group of the constituents over exactly these words."""
    group, first = _group(node.doc), _place(node)
    last = first
    while last < len(group) and _same(group[last], node):
        last += 1
    return list(range(first, last))


def _below(node: Span) -> list[Span]:
    """List the constituents within a node in preorder, its own chain first."""
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
            f"{kind.__name__}._.{name} is another package's attribute and stays as it is: "
            f"call spacy_psa.pipeline.parser.extensions.{name} instead",
            stacklevel=3,
        )
