"""Precision, recall and F1 of a group of spans that may overlap."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example


def score_group(
    examples: Iterable[Example], key: str, gold: Callable[[Doc], Iterable[Span] | None]
) -> dict[str, Any]:
    """Score predicted.spans[key] as `spans_<key>_p`, `_r`, `_f` and `_per_type`.

    `gold` returns the spans of a reference doc, or None if it has no such annotation; then the doc
    does not count.
    """
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


def accuracy(examples: list[Example], key: str | None) -> dict[str, Any]:
    """Score the spans of a group, or the entities if `key` is None, as spaCy does."""
    if key is None:
        return get_ner_prf(examples)
    return Scorer.score_spans(
        examples,
        key,
        getter=lambda doc, _: doc.spans.get(key, ()),
        has_annotation=lambda doc: key in doc.spans,
        allow_overlap=True,
    )
