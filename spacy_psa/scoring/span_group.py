"""Precision, recall and F1 of a group of spans that may overlap."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example


def score_group(
    examples: Iterable[Example], key: str, gold: Callable[[Doc], Iterable[Span] | None]
) -> dict[str, Any]:
    """Score predicted.spans[key].

    Args:
        examples: the docs.
        key: the name of the span group.
        gold: gives the spans of a reference doc, or None if it has no such annotation; then the doc
            does not count.

    Returns:
        `spans_<key>_p`, `spans_<key>_r`, `spans_<key>_f` and `spans_<key>_per_type`.

    Examples:
        >>> from spacy.vocab import Vocab
        >>> gold = Doc(Vocab(), words=["Ada", "left"], ents=["B-PER", "O"])
        >>> doc = Doc(gold.vocab, words=["Ada", "left"])
        >>> doc.spans["ner"] = [Span(doc, 0, 1, "PER"), Span(doc, 0, 2, "PER")]
        >>> scores = score_group([Example(doc, gold)], "ner", lambda reference: reference.ents)
        >>> scores["spans_ner_p"], scores["spans_ner_r"]
        (0.5, 1.0)
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
