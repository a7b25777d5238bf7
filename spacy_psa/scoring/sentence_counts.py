"""Right, predicted and gold units of each sentence, of which F1 and accuracy are made.

Summed over all sentences they make the score: F1 = 2 right / (predicted + gold). Tests of
significance and confidence intervals resample them.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from spacy_psa.sentences import sentence_bounds

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span
    from spacy.training import Example


MISSING = 0  # the value of Token.ent_iob without entity annotation
Unit = tuple[int, int, str]
"""Start, end and label, over the tokens of a doc."""
Units = tuple["Doc", list[Unit], list[Unit]]
"""A reference, its gold units and the predicted ones."""


class Count(NamedTuple):
    """The units of a sentence."""

    right: int
    predicted: int
    gold: int

    @property
    def f1(self) -> float:
        """F1; 0 if there is no unit."""
        units = self.predicted + self.gold
        return 2 * self.right / units if units else 0.0


def total(counts: Sequence[Sequence[int]]) -> Count:
    """Sum counts."""
    right, predicted, gold = (sum(column) for column in zip(*counts)) if counts else (0, 0, 0)
    return Count(right, predicted, gold)


def entity_counts(examples: "Iterable[Example]") -> list[Count]:
    """Count the entities of each sentence, as spaCy's scorer of `ents_f` does.

    Sentences are those of the reference. Docs whose reference has no entity annotation have none,
    and predicted entities over tokens without annotation do not count.
    """
    return [count for units in entity_units(examples) for count in _by_sentence(*units)]


def entity_units(examples: "Iterable[Example]") -> "Iterator[Units]":
    """Yield the entities that count, over the tokens of the references; see `entity_counts`."""
    for example in examples:
        gold = example.reference
        if gold.has_annotation("ENT_IOB"):
            places = reference_places(example, example.predicted.ents, annotated=True)
            yield gold, [*map(_place, gold.ents)], [*filter(None, places)]


def reference_places(
    example: "Example", spans: "Iterable[Span]", annotated: bool
) -> "Iterator[tuple[int, int, str] | None]":
    """Yield the start, end and label of each predicted span, in tokens of the reference.

    None if it has no such tokens or, with `annotated`, if one lacks entity annotation.
    """
    align, iob = example.alignment.x2y, example.reference.to_array(["ENT_IOB"])
    for span in spans:
        tokens = align[span.start : span.end]
        start, end = (int(tokens[0]), int(tokens[-1]) + 1) if len(tokens) else (0, 0)
        known = start < end and not (annotated and (iob[start:end] == MISSING).any())
        yield (start, end, span.label_) if known else None


def span_counts(examples: "Iterable[Example]", key: str) -> list[Count]:
    """Count the spans of a group in each sentence of the docs whose reference has the group."""
    return [count for units in span_units(examples, key) for count in _by_sentence(*units)]


def span_units(examples: "Iterable[Example]", key: str) -> "Iterator[Units]":
    """Yield the spans that `span_counts` counts, over the tokens of the references."""
    for example in examples:
        gold = example.reference
        if key in gold.spans:
            spans = example.predicted.spans.get(key, ())
            spans = example.get_aligned_spans_x2y(spans, allow_overlap=True)
            yield gold, [*map(_place, gold.spans[key])], [*map(_place, spans)]


def tag_counts(examples: "Iterable[Example]") -> list[Count]:
    """Count the tokens of each sentence that have a gold tag, as spaCy's `tag_acc` does."""
    counts = []
    for example in examples:
        gold, align = example.reference, example.alignment.x2y
        wanted = [(t.i, t.i + 1, t.tag_) for t in gold if t.tag_]
        known = {start for start, _, _ in wanted}
        given = []
        for token in example.predicted:
            if not token.orth_.isspace() and align.lengths[token.i] == 1:
                at = int(align[token.i][0])
                if at in known:
                    given.append((at, at + 1, token.tag_))
        counts += _by_sentence(gold, wanted, given)
    return counts


def _place(span: "Span") -> Unit:
    return span.start, span.end, span.label_


def _by_sentence(
    gold: "Doc",
    wanted: Iterable[tuple[int, int, Hashable]],
    given: Iterable[tuple[int, int, Hashable]],
) -> list[Count]:
    """Count units in the sentence of the reference in which they begin."""
    starts = [start for start, _ in sentence_bounds(gold)]
    places: list[tuple[set, set]] = [(set(), set()) for _ in starts]
    for kind, units in enumerate((wanted, given)):
        for unit in units:
            places[bisect_right(starts, unit[0]) - 1][kind].add(unit)
    return [Count(len(a & b), len(b), len(a)) for a, b in places]


EDGES = (5, 10, 20, 30, 40)
"""The least numbers of tokens of the second bin, the third and so on."""


class Bin(NamedTuple):
    """The sentences of some lengths."""

    least: int
    most: int | None
    """The greatest number of tokens; None for no limit."""
    sentences: int
    units: Count

    @property
    def name(self) -> str:
        """The lengths, as they are written: "5-9"."""
        return f"{self.least}+" if self.most is None else f"{self.least}-{self.most}"


def by_length(counts: Iterable[tuple[int, Count]], edges: Sequence[int] = EDGES) -> list[Bin]:
    """Sum the counts of sentences of about the same length.

    Args:
        counts: the tokens of each sentence, and its counts.
        edges: the least numbers of tokens of all bins but the first, rising.

    Examples:
        >>> bins = by_length([(3, Count(1, 1, 1)), (7, Count(0, 1, 1))], edges=[5])
        >>> [(each.name, each.sentences, each.units.f1) for each in bins]
        [('1-4', 1, 1.0), ('5+', 1, 0.0)]
    """
    held: list[list[Count]] = [[] for _ in range(len(edges) + 1)]
    for tokens, count in counts:
        held[bisect_right(edges, tokens)].append(count)
    bounds = zip([1, *edges], [*(edge - 1 for edge in edges), None], strict=True)
    return [
        Bin(least, most, len(each), total(each))
        for (least, most), each in zip(bounds, held, strict=True)
    ]
