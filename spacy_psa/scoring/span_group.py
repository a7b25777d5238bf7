"""Precision, recall and F of a group of spans that may overlap."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example


def score_group(
    examples: Iterable[Example], key: str, gold: Callable[[Doc], Iterable[Span] | None]
) -> dict[str, Any]:
    """`spans_<key>_p`, `_r`, `_f` and `_per_type` of predicted.spans[key].

    gold: gives the spans of a reference doc; None where it has no such annotation, and
    then the doc does not count."""
    examples = list(examples)
    predicted = {id(example.predicted) for example in examples}

    def spans(doc: Doc, _: str) -> Iterable[Span]:
        return doc.spans.get(key, ()) if id(doc) in predicted else gold(doc) or ()

    return Scorer.score_spans(
        examples,
        f"spans_{key}",
        getter=spans,
        has_annotation=lambda doc: id(doc) in predicted or gold(doc) is not None,
        allow_overlap=True,
    )
