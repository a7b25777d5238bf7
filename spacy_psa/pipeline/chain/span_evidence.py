"""Evidence on the spans of a sentence as what a chain can use: tags, and weights of spans."""

import math

import numpy

from spacy_psa.pipeline.chain.chain_analyses import Known
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.pipeline.evidence import OUTSIDE, Evidence


def what_is_known(evidence: Evidence, length: int, scheme: SpanScheme) -> Known:
    """Find the tags that evidence on a sentence of `length` tokens allows, and weights of spans."""
    forbidden = [
        (start, end, each)
        for start, end, label in evidence.forbidden
        for each in ([label] if label else scheme.labels)
    ]
    weights = {**evidence.suggested, **dict.fromkeys(forbidden, -math.inf)}
    if not evidence.required and not evidence.allowed:
        return Known(None, weights)
    allowed = numpy.ones((length, len(scheme.tags)), dtype=bool)
    for start, end, label in evidence.required:
        there = numpy.zeros_like(allowed[start:end])
        for each in [label] if label else scheme.labels:
            tags = scheme.encode(end - start, [(0, end - start, each)])
            there[numpy.arange(end - start), tags] = True
            allowed[end : end + 1, scheme.tag("I", each)] = False  # the span does not continue
        allowed[start:end] &= there
    label_of = [OUTSIDE, *(label for label in scheme.labels for _ in scheme.prefixes)]
    for i, labels in evidence.allowed.items():
        allowed[i] &= [label in labels for label in label_of]
    return Known(allowed, weights)
