"""What several annotators of a text agree on."""

from collections.abc import Mapping
from typing import NamedTuple

from spacy_psa.studio.active_learning.decisions import Decided, Labelled


class Agreement(NamedTuple):
    """What annotators agree on, and where they do not.

    Examples:
        >>> ann = Decided(accepted=((0, 2, "PER"),), outside=frozenset({2, 3}))
        >>> bob = Decided(accepted=((0, 1, "PER"),), outside=frozenset({3}))
        >>> both = agreement({"ann": ann, "bob": bob})
        >>> both.decided.accepted, sorted(both.decided.outside)
        ((), [2, 3])
        >>> both.disagreements
        ((0, 1, 'PER'), (0, 2, 'PER'))
    """

    decided: Decided
    disagreements: tuple[Labelled, ...] = ()
    """The spans that one annotator has accepted and another has not."""


def agreement(decided: Mapping[str, Decided]) -> Agreement:
    """Join what annotators have decided about a text.

    What one of them has left undecided contradicts nothing. A span is contradicted by another over
    one of its tokens, by a token that is in no span, and by its rejection. Tokens of contradicted
    spans are undecided.

    Args:
        decided: what each annotator has decided.
    """
    views = list(decided.values())
    spans = sorted({span for view in views for span in view.accepted})
    refused = [span for span in spans if any(_contradicts(view, span) for view in views)]
    disputed = {i for start, end, _ in refused for i in range(start, end)}
    accepted = tuple(span for span in spans if span not in refused)
    kept = {i for start, end, _ in accepted for i in range(start, end)}
    outside = frozenset(i for view in views for i in view.outside) - disputed - kept
    bounds = {span[:2] for span in refused}
    rejected = {
        span
        for view in views
        for span in view.rejected
        if span not in refused and (span[2] or span[:2] not in bounds)
    }
    return Agreement(Decided(accepted, tuple(sorted(rejected)), outside), tuple(refused))


def _contradicts(view: Decided, span: Labelled) -> bool:
    start, end, _ = span
    if span in view.accepted:
        return False
    return (
        any(s < end and start < e for s, e, _ in view.accepted)
        or not view.outside.isdisjoint(range(start, end))
        or span in view.rejected
        or (start, end, "") in view.rejected
    )
