"""Scores with partial credit, for spans of which only the bounds or the label are right.

The four schemes are those of SemEval-2013 task 9 (Segura-Bedmar et al. 2013), known from the
package nervaluate. There, the score may depend on the order of the spans. Here, it is that of the
one-to-one pairs of gold and predicted spans that get the most credit.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from spacy_psa.scoring.sentence_counts import Unit, entity_units, span_units

if TYPE_CHECKING:
    from spacy.training import Example

Scheme = Literal["strict", "exact", "partial", "type"]
"""The way to score a span: by bounds and label, by bounds, by overlap, or by label and overlap."""
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
LONGEST = 4
"""Spans of this many tokens and more are scored together."""


class Outcome(NamedTuple):
    """A gold span and the predicted span for it; one of them may be missing."""

    gold: Unit | None
    predicted: Unit | None
    credit: float
    """1, 0.5 or 0."""

    @property
    def kind(self) -> str:
        """The name that SemEval has for it."""
        if self.gold is None:
            return "spurious"
        if self.predicted is None:
            return "missed"
        return {1.0: "correct", 0.5: "partial", 0.0: "incorrect"}[self.credit]


KINDS = ("correct", "incorrect", "partial", "missed", "spurious")


def outcomes(gold: Iterable[Unit], predicted: Iterable[Unit], scheme: Scheme) -> list[Outcome]:
    """Pair the gold and the predicted spans of a doc, one to one, for the most credit.

    A span is (start, end, label). The spans of a doc may overlap.

    Examples:
        >>> [each.kind for each in outcomes([(0, 2, "PER")], [(0, 1, "PER")], "type")]
        ['correct']
    """
    wanted, given = sorted({*gold}), sorted({*predicted})
    near = _overlapping(wanted, given)
    paired: list[Outcome] = []
    left, free = {*range(len(wanted))}, {*range(len(given))}
    for right, credit in (
        (_RIGHT[scheme], 1.0),
        (lambda a, b: True, 0.5 if scheme == "partial" else 0.0),
    ):
        edges = {
            i: [j for j in near[i] if j in free and right(wanted[i], given[j])]
            for i in sorted(left)
        }
        for i, j in _matching(edges):
            paired.append(Outcome(wanted[i], given[j], credit))
            left.remove(i)
            free.remove(j)
    paired += [Outcome(wanted[i], None, 0.0) for i in sorted(left)]
    return paired + [Outcome(None, given[j], 0.0) for j in sorted(free)]


_RIGHT: dict[Scheme, Callable[[Unit, Unit], bool]] = {
    "strict": lambda a, b: a == b,
    "exact": lambda a, b: a[:2] == b[:2],
    "partial": lambda a, b: a[:2] == b[:2],
    "type": lambda a, b: a[2] == b[2],
}


def _overlapping(wanted: Sequence[Unit], given: Sequence[Unit]) -> list[list[int]]:
    """For each gold span, list the places of the predicted spans that overlap it."""
    starts = [start for start, _, _ in given]
    longest = max((end - start for start, end, _ in given), default=0)
    return [
        [
            j
            for j in range(bisect_left(starts, start - longest), bisect_left(starts, end))
            if given[j][1] > start
        ]
        for start, end, _ in wanted
    ]


def _matching(edges: dict[int, list[int]]) -> list[tuple[int, int]]:
    """Find a one-to-one matching with the most pairs, along augmenting paths (Kuhn 1955)."""
    own: dict[int, int] = {}
    other: dict[int, int] = {}
    hopeless: set[int] = set()  # from here no path leads to a free one, now or later
    for root in edges:
        via: dict[int, int] = {}
        queue = [root]
        for i in queue:
            free = next((j for j in edges[i] if j not in other), None)
            if free is not None:
                end: int | None = free
                via[free] = i
                while end is not None:
                    i = via[end]
                    other[end], own[i], end = i, end, own.get(i)
                break
            new = [j for j in edges[i] if j not in via and j not in hopeless]
            via.update(dict.fromkeys(new, i))
            queue += [other[j] for j in new]
        else:
            hopeless.update(via)
    return sorted(own.items())


def partial_credit(docs: Iterable[tuple[Iterable[Unit], Iterable[Unit]]]) -> dict[str, Any]:
    """Score the spans of docs, the gold and the predicted ones of each, in all four schemes.

    Each scheme has `p`, `r` and `f`, the numbers of the `KINDS`, and `per_type` and `per_length`:
    {label or number of tokens: {p, r, f, gold}}. Predicted spans count in the precision of their
    own label and length, gold spans in the recall of theirs.
    """
    docs = [(list(gold), list(predicted)) for gold, predicted in docs]
    scores: dict[str, Any] = {}
    for scheme in SCHEMES:
        pairs = [each for gold, own in docs for each in outcomes(gold, own, scheme)]
        kinds = Counter(each.kind for each in pairs)
        scores[scheme] = {
            **_scores(
                [each.credit for each in pairs if each.predicted],
                [each.credit for each in pairs if each.gold],
            ),
            **{kind: kinds[kind] for kind in KINDS},
            "per_type": _scores_by(pairs, lambda span: span[2]),
            "per_length": _scores_by(pairs, _length),
        }
    return scores


def _length(span: Unit) -> str:
    tokens = span[1] - span[0]
    return str(tokens) if tokens < LONGEST else f"{LONGEST}+"


def _scores_by(pairs: Iterable[Outcome], group: Callable[[Unit], str]) -> dict[str, dict[str, Any]]:
    given, wanted = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for gold, predicted, credit in pairs:
        if predicted:
            given[group(predicted)].append(credit)
        if gold:
            wanted[group(gold)].append(credit)
    return {
        name: {**_scores(given[name], wanted[name]), "gold": len(wanted[name])}
        for name in sorted({*given, *wanted})
    }


def _scores(given: Sequence[float], wanted: Sequence[float]) -> dict[str, float]:
    """Compute precision, recall and F1 from the credits of predicted and of gold spans."""
    p = sum(given) / len(given) if given else 0.0
    r = sum(wanted) / len(wanted) if wanted else 0.0
    return {"p": p, "r": r, "f": 2 * p * r / (p + r) if p + r else 0.0}


def score_partial_credit(
    examples: "Iterable[Example]", *, spans_key: str | None = None, **_: Any
) -> dict[str, Any]:
    """Score the entities or the spans of a group in all four schemes.

    Args:
        examples: the docs. Those whose reference has no such annotation do not count, nor predicted
            entities over tokens without annotation.
        spans_key: the span group; None for the entities.

    Returns:
        spaCy's own scores (`ents_p`, `ents_r`, `ents_f`, `ents_per_type`), `ents_exact_p` and so on
        for each scheme, and `ents_schemes`, see `partial_credit`. `spans_key` replaces `ents`.
    """
    from spacy_psa.scoring.span_group import accuracy

    examples = list(examples)
    name = spans_key or "ents"
    units = span_units(examples, spans_key) if spans_key else entity_units(examples)
    docs = [(wanted, given) for _, wanted, given in units]
    schemes = partial_credit(docs) if docs else None
    flat = {
        f"{name}_{scheme}_{kind}": schemes[scheme][kind] if schemes else None
        for scheme in SCHEMES
        for kind in "prf"
    }
    return {**accuracy(examples, spans_key), **flat, f"{name}_schemes": schemes}


def partial_credit_scorer(spans_key: str | None = None) -> Callable[..., dict[str, Any]]:
    """The scorer `spacy-psa.partial_credit_scorer.v1`; see `score_partial_credit`.

    Args:
        spans_key: the key of `doc.spans` with the spans; None for the entities.
    """
    return partial(score_partial_credit, spans_key=spans_key)
