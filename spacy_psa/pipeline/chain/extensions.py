"""Custom attributes for the confidence of predictions, on spans, tokens and docs.

`Span._.confidence` and `Doc._.confidence` are read from `attrs["scores"]` of the span groups in
`doc.spans`. A value stored on a span would be shared by all spans with the same offsets, whatever
their labels; and span groups are kept where user data is lost.
"""

import warnings
from typing import Any

import numpy
from spacy.tokens import Doc, Span, Token

from spacy_psa.pipeline.written import group_scores, noted_names, noted_score, spans_now


def register() -> None:
    """Add the custom attributes for confidence.

    - `Span._.confidence`: the probability of the span with its label; see `span_confidence`.
    - `Doc._.confidence`: the scores of all span groups; see `doc_confidence`.
    - `Doc._.ner_uncertainty`: the entropy that `crf_ner` writes, in nats; None before.
    - `Token._.tag_confidence`: the probability that `crf_tagger` writes; None before.

    Components with `confidence = true` call this function when they are made. Call it to read
    saved docs without such a component. If there is another attribute with one of these names, it
    stays, with a warning.

    Examples:
        >>> register()
        >>> Span.has_extension("confidence"), Doc.has_extension("ner_uncertainty")
        (True, True)
    """
    _register(Span, "confidence", getter=span_confidence)
    _register(Doc, "confidence", getter=doc_confidence, setter=set_doc_confidence)
    _register(Doc, "ner_uncertainty", default=None)
    _register(Token, "tag_confidence", default=None)


def span_confidence(span: Span) -> float | None:
    """Find the probability of a span with its label, for `Span._.confidence`.

    This is the score of the same span, with the same label, in the first group of `doc.spans` that
    has a score for it.

    Returns:
        The probability; None if no group has it.

    Examples:
        >>> import spacy
        >>> from spacy.tokens import SpanGroup
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> ada = Span(doc, 0, 1, "PER")
        >>> doc.spans["ner"] = SpanGroup(doc, attrs={"scores": [0.9]}, spans=[ada])
        >>> span_confidence(ada)
        0.9
    """
    keys = list(span.doc.spans)
    for key in keys:
        if span.doc.spans[key].attrs.get("scores") is None:
            continue
        group = spans_now(span.doc, key)
        scores = group_scores(group)
        for other, score in zip(group, () if scores is None else scores):
            if (other.start, other.end, other.label) == (span.start, span.end, span.label):
                return float(score)
    # Doc.from_docs drops the scores of groups, and Span.as_doc(copy_user_data=True) the groups, but
    # both keep the notes.
    notes = (noted_score(key, span) for key in keys or noted_names(span.doc))
    return next((score for score in notes if score is not None), None)


def doc_confidence(doc: Doc) -> dict[str, list[float]]:
    """Collect the scores of the span groups of a doc, for `Doc._.confidence`.

    As an attribute of the doc, they pass through `Doc.to_json(underscore=["confidence"])` and
    `Doc.from_json`, which leave out the attrs of span groups.

    Returns:
        The scores of each group that has scores, by the group's key in `doc.spans`.
    """
    return {
        key: numpy.asarray(scores).tolist()
        for key, group in list(doc.spans.items())
        if group.attrs.get("scores") is not None
        and (scores := group_scores(spans_now(doc, key))) is not None
    }


def set_doc_confidence(doc: Doc, scores: dict[str, list[float]]) -> None:
    """Set the scores of span groups of a doc, as the setter of `Doc._.confidence`.

    ValueError if a group is missing, or has another number of spans.
    """
    for key, values in scores.items():
        if key not in doc.spans or len(doc.spans[key]) != len(values):
            raise ValueError(
                f'doc.spans["{key}"] does not have the {len(values)} spans of the scores: '
                "there must be one score for each of its spans"
            )
        doc.spans[key].attrs["scores"] = numpy.array(values)


def _register(kind: Any, name: str, **options: Any) -> None:
    if not kind.has_extension(name):
        kind.set_extension(name, **options)
        return
    default, _, getter, _ = kind.get_extension(name)
    if getter is not options.get("getter") or default is not None:
        warnings.warn(
            f"{kind.__name__}._.{name} is another package's attribute and stays as it is: "
            'read doc.spans[...].attrs["scores"] instead',
            stacklevel=3,
        )
