"""The tree of one sentence, read from the constituents on its doc.

Constituents know their characters, and so they follow when tokens are merged or split after
parsing: they are found by characters and, when they are at other tokens now, written anew. One
that begins or ends inside a token is left out then. White space at the ends of a constituent is cut
off in the same way.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from spacy.tokens import Doc, Span, SpanGroup

from spacy_psa.pipeline.parser.constituents import KEY
from spacy_psa.pipeline.written import bare, follow_tokens, has_moved, is_moved, preorder


class NonConstituentException(ValueError):
    """Raised for a span that is not a constituent of its sentence's tree."""


class SentenceTree(NamedTuple):
    """The constituents of one sentence, which are nested and within it."""

    sentence: Span
    """The sentence without the white space at its ends."""
    first: int
    """The place of its first constituent in the span group."""
    spans: list[Span]
    """Its constituents in preorder; of a unary chain, the outermost first."""

    @classmethod
    def around(cls, node: Span, key: str = KEY) -> "SentenceTree":
        """Read the tree of the sentence of a span that begins and ends with a word.

        ValueError if the doc has no group `key`, or if the constituents are not a tree.
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
        """Raise NonConstituentException unless a span is a word, a constituent or the sentence."""
        if len(node) > 1 and not self.chain(node) and not same(node, self.sentence):
            raise NonConstituentException(
                f"{node.text!r} (tokens {node.start} to {node.end}) is not a constituent of its "
                "tree"
            )

    def place(self, node: Span) -> int:
        """Find the place in `spans` at which the chain of a node begins, or would begin."""
        return bisect_left(self.spans, preorder(node), key=preorder)

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
    """Cut white space off the ends of a span and read the tree of its sentence; None without words.

    Raises:
        NonConstituentException: if the span is not a node.
        ValueError: if the doc has no trees, or if the constituents of the sentence are not a tree.
    """
    constituents_of(span.doc, key)
    node = bare(span)
    if node is None:
        return span, None
    tree = SentenceTree.around(node, key)
    tree.check_node(node)
    return node, tree


def constituents_of(doc: Doc, key: str = KEY) -> SpanGroup:
    """Return the span group with the constituents of a doc; ValueError if it has none."""
    if key not in doc.spans:
        raise ValueError(
            f'the doc has no trees in doc.spans["{key}"]: annotate it with a constituency_parser '
            "(Span.as_doc leaves span groups out)"
        )
    return doc.spans[key]


def same(span: Span, other: Span) -> bool:
    """Tell whether two spans have the same tokens."""
    return (span.start, span.end) == (other.start, other.end)


def in_order(doc: Doc, key: str = KEY) -> SpanGroup:
    """Return the constituents of a doc in preorder, at the tokens that the doc has now.

    They are written anew if they were not so. ValueError if the doc has none.
    """
    group = constituents_of(doc, key)
    in_place = not has_moved(group) and not any(map(_ends_in_space, group))
    if in_place and all(preorder(a) <= preorder(b) for a, b in pairwise(group)):
        return group
    return follow_tokens(doc, key, cut=True)


class _Moved(Exception):
    """The constituents are at other tokens now, at white space, or out of order."""


def _read(sentence: Span, group: SpanGroup) -> tuple[int, list[Span]]:
    """Read the constituents of a sentence, and the place of the first of them in the group."""
    try:
        first = bisect_left(group, preorder(sentence), key=preorder)
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
    if any(is_moved(span) or _ends_in_space(span) for span in around):
        raise _Moved
    if before is not None and before.end_char > sentence.start_char:
        raise _crossing(before, f"the start of the sentence {sentence.text!r}")
    above = [sentence]
    for before_it, span in zip([sentence, *spans], spans):
        if preorder(span) < preorder(before_it):
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
        "set sentence boundaries before the doc is parsed, and constituents must be nested"
    )


def _ends_in_space(span: Span) -> bool:
    """Tell whether a constituent begins or ends with white space."""
    if span.start == span.end:
        return False
    return bool(span.doc[span.start].is_space or span.doc[span.end - 1].is_space)
