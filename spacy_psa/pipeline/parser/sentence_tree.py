"""The tree of one sentence, read from the constituents on its doc.

Constituents know their characters, and so they follow when tokens are merged or split after
parsing: they are found by characters and, when they stand at other tokens now, written anew. One
that begins or ends inside a token is left out then. White space at the ends of a constituent is cut
off in the same way.
"""

import struct
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import srsly
from spacy.tokens import Doc, Span, SpanGroup

from spacy_psa.pipeline.parser.constituents import KEY

PACKED = ">QQQllll"
"""A span as SpanGroup.to_bytes packs it: id, kb_id, label, tokens, characters."""


class NonConstituentException(ValueError):
    """Raised for a span that is no constituent of its sentence's tree.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [Span(doc, 0, 3, "S")]
        >>> try:
        ...     SentenceTree.around(doc[1:3]).check_node(doc[1:3])
        ... except NonConstituentException as error:
        ...     print(error)
        'met Bob' (tokens 1 to 3) is not a constituent of its tree
    """


class SentenceTree(NamedTuple):
    """The constituents of one sentence, which are nested and within it.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [Span(doc, 0, 3, "S"), Span(doc, 1, 3, "VP")]
        >>> tree = SentenceTree.around(doc[1:2])
        >>> tree.spans, list(tree.right_below(tree.sentence))
        ([Ada met Bob, met Bob], [Ada, met Bob])
    """

    sentence: Span
    """The sentence without the white space at its ends."""
    first: int
    """The place of its first constituent in the span group."""
    spans: list[Span]
    """Its constituents in preorder; of a unary chain, the outermost first."""

    @classmethod
    def around(cls, node: Span, key: str = KEY) -> "SentenceTree":
        """Read the tree of the sentence of a span that begins and ends with a word.

        Args:
            node: the span.
            key: the span group with the constituents.

        Raises:
            ValueError: if the doc has no such group, or if the constituents of the sentence are no
                tree.
        """
        doc = node.doc
        whole = node.sent if doc.has_annotation("SENT_START") else doc[:]
        sentence = bare(whole)
        assert sentence is not None  # it has the words of the node
        group = constituents_of(doc, key)
        try:
            return cls(sentence, *_read(sentence, group))
        except _Moved:
            return cls(sentence, *_read(sentence, follow_tokens(doc, key, cut=True)))

    def check_node(self, node: Span) -> None:
        """Check that a span is a word, a constituent or the sentence.

        Raises:
            NonConstituentException: if it is not.
        """
        if len(node) > 1 and not self.chain(node) and not same(node, self.sentence):
            raise NonConstituentException(
                f"{node.text!r} (tokens {node.start} to {node.end}) is not a constituent of its "
                "tree"
            )

    def place(self, node: Span) -> int:
        """Find the place in `spans` at which the chain of a node begins, or would begin."""
        return bisect_left(self.spans, _order(node), key=_order)

    def chain(self, node: Span) -> list[int]:
        """Find the places in `spans` of the constituents over exactly the words of a node."""
        first = last = self.place(node)
        while last < len(self.spans) and same(self.spans[last], node):
            last += 1
        return list(range(first, last))

    def below(self, node: Span) -> list[Span]:
        """List the constituents within a node in preorder, its own chain first."""
        first = last = self.place(node)
        while last < len(self.spans) and self.spans[last].start < node.end:
            last += 1
        return self.spans[first:last]

    def subtree(self, node: Span) -> Iterator[Span]:
        """Yield the nodes of the subtree of a node in preorder, words too, each once."""
        offsets = {(c.start, c.end) for c in [node, *self.below(node)]}
        offsets |= {(token.i, token.i + 1) for token in node if token.text.strip()}
        for start, end in sorted(offsets, key=lambda offset: (offset[0], -offset[1])):
            yield node.doc[start:end]

    def right_below(self, node: Span) -> Iterator[Span]:
        """Yield the nodes right below a node, from left to right."""
        done = node.start
        for part in self.subtree(node):
            if part.start >= done and not same(part, node):
                yield part
                done = part.end


def node_and_tree(span: Span, key: str = KEY) -> tuple[Span, SentenceTree | None]:
    """Cut white space off the ends of a span and read the tree of its sentence.

    Returns:
        The span and the tree; no tree if the span has no words.

    Raises:
        NonConstituentException: if the span is no node.
        ValueError: if the doc has no trees, or if the constituents of the sentence are no tree.
    """
    constituents_of(span.doc, key)
    node = bare(span)
    if node is None:
        return span, None
    tree = SentenceTree.around(node, key)
    tree.check_node(node)
    return node, tree


def constituents_of(doc: Doc, key: str = KEY) -> SpanGroup:
    """Give the span group with the constituents of a doc.

    Raises:
        ValueError: if the doc has none.
    """
    if key not in doc.spans:
        raise ValueError(
            f'the doc has no trees in doc.spans["{key}"]: annotate it with a constituency_parser '
            "(Span.as_doc leaves span groups out)"
        )
    return doc.spans[key]


def bare(span: Span) -> Span | None:
    """Cut white space off the ends of a span; None if there is nothing else."""
    words = [token.i for token in span if token.text.strip()]
    return span.doc[words[0] : words[-1] + 1] if words else None


def same(one: Span, other: Span) -> bool:
    """Tell whether two spans have the same tokens."""
    return (one.start, one.end) == (other.start, other.end)


def in_order(doc: Doc, key: str = KEY) -> SpanGroup:
    """Give the constituents of a doc in preorder, at the tokens that the doc has now.

    They are written anew if they were not so.

    Raises:
        ValueError: if the doc has no such group.
    """
    group = constituents_of(doc, key)
    in_place = not has_moved(group) and not any(map(_ends_in_space, group))
    if in_place and all(_order(one) <= _order(other) for one, other in pairwise(group)):
        return group
    return follow_tokens(doc, key, cut=True)


def has_moved(group: SpanGroup) -> bool:
    """Tell whether spans have other characters than their tokens, which were merged or split.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["names"] = [Span(doc, 2, 3, "NP")]
        >>> before = has_moved(doc.spans["names"])
        >>> with doc.retokenize() as retokenizer:
        ...     retokenizer.merge(doc[0:2])
        >>> before, has_moved(doc.spans["names"])
        (False, True)
    """
    try:
        return any(map(_moved, group))
    except IndexError:  # at tokens that there are no more
        return True


def follow_tokens(doc: Doc, key: str = KEY, *, cut: bool = False) -> SpanGroup:
    """Write the constituents of a doc anew: in preorder, at the tokens that have their characters.

    Tokens may have been merged or split since they were written. Scores stay with their
    constituents. A warning says how many constituents begin or end inside a token now.

    Args:
        doc: the doc.
        key: the span group of the constituents.
        cut: whether white space at the ends of a constituent is cut off; one of white space alone
            is left out then.

    Returns:
        The new span group.

    Examples:
        >>> import spacy
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> doc.spans["constituents"] = [Span(doc, 0, 3, "S"), Span(doc, 2, 3, "NP")]
        >>> with doc.retokenize() as retokenizer:
        ...     retokenizer.merge(doc[0:2])
        >>> [(span.start, span.end) for span in follow_tokens(doc)]
        [(0, 2), (1, 2)]
    """
    group = doc.spans[key]
    # A span at tokens that there are no more cannot be made, so its characters are read packed.
    packed = srsly.msgpack_loads(group.to_bytes())["spans"]
    rows = [struct.unpack(PACKED, each) for each in packed]
    starts = {token.idx: token.i for token in doc}
    ends = {token.idx + len(token): token.i + 1 for token in doc}
    found = {
        i: doc[starts[first] : ends[last]]
        for i, (*_, first, last) in enumerate(rows)
        if first in starts and last in ends
    }
    lost = len(rows) - len(found)
    if cut:
        found = {i: part for i, span in found.items() if (part := bare(span)) is not None}
    kept = sorted(found, key=lambda i: (*_order(found[i]), rows[i][5], -rows[i][6]))
    spans = [
        Span(doc, found[i].start, found[i].end, label=label, kb_id=kb, span_id=own)
        for i, (own, kb, label, *_) in ((i, rows[i]) for i in kept)
    ]
    attrs = dict(group.attrs)
    if attrs.get("scores") is not None and len(attrs["scores"]) == len(rows):
        attrs["scores"] = [attrs["scores"][i] for i in kept]
    doc.spans[key] = SpanGroup(doc, name=group.name, attrs=attrs, spans=spans)
    if lost:
        warnings.warn(
            f'{lost} constituent(s) of doc.spans["{key}"] begin or end inside a token, because '
            "tokens were merged after parsing: they are left out",
            stacklevel=4,
        )
    return doc.spans[key]


class _Moved(Exception):
    """The constituents stand at other tokens now, at white space, or out of order."""


def _read(sentence: Span, group: SpanGroup) -> tuple[int, list[Span]]:
    """Read the constituents of a sentence, and the place of the first of them in the group."""
    try:
        first = bisect_left(group, _order(sentence), key=_order)
        before = group[first - 1] if first else None
        spans = []
        for i in range(first, len(group)):
            span = group[i]
            if span.start_char >= sentence.end_char:
                break
            spans.append(span)
    except IndexError:
        raise _Moved from None
    around = spans if before is None else [before, *spans]
    if any(_moved(span) or _ends_in_space(span) for span in around):
        raise _Moved
    if before is not None and before.end_char > sentence.start_char:
        raise _crossing(before, f"the start of the sentence {sentence.text!r}")
    above = [sentence]
    for one, span in zip([sentence, *spans], spans):
        if _order(span) < _order(one):
            raise _Moved
        if span.end_char > sentence.end_char:
            raise _crossing(span, f"the end of the sentence {sentence.text!r}")
        while above[-1].end <= span.start:
            above.pop()
        if span.end > above[-1].end:
            raise _crossing(span, f"the constituent {above[-1].text!r}")
        above.append(span)
    return first, spans


def _crossing(node: Span, what: str) -> ValueError:
    return ValueError(
        f"the constituent {node.text!r} (tokens {node.start} to {node.end}) crosses {what}: "
        "set sentence boundaries before the doc is parsed, and give constituents that are nested"
    )


def _moved(span: Span) -> bool:
    """Tell whether a constituent has other characters than its tokens."""
    doc = span.doc
    if span.start == span.end:
        return False
    last = doc[span.end - 1]
    return (doc[span.start].idx, last.idx + len(last)) != (span.start_char, span.end_char)


def _ends_in_space(span: Span) -> bool:
    """Tell whether a constituent begins or ends with white space."""
    if span.start == span.end:
        return False
    return bool(span.doc[span.start].is_space or span.doc[span.end - 1].is_space)


def _order(span: Span) -> tuple[int, int]:
    return span.start_char, -span.end_char
