"""The chart parser's model: Model[List[Doc], List[Floats2d]], scores of labelled spans."""

from typing import get_args

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.architectures.heads import has_boundaries, sentencewise
from spacy_psa.bridge import head_layer
from spacy_psa.errors import InputError
from spacy_psa.modules.span_scores import Sides, SpanScores


def chart_parser(
    tok2vec: Model[list[Doc], list[Floats2d]], hidden: int = 250, sides: Sides = "even_odd"
) -> Model:
    """`ChartParser.v1`: a score for each span and label of a sentence (K section 2.3).

    Gives an array (n (n + 1) / 2, L - 1) for each sentence of n tokens, by the spans' start
    and then end; its nO is L - 1, the labels without the null label, whose score is 0.

    tok2vec: n rows a sentence; then START and STOP are vectors of the head's own. Or n + 2
    from `FactoredTransformer.v1` with `boundaries = true`, where they take part in attention.
    hidden: width of the hidden layer over a span's vector (K's code: 250).

    sides: what of a token's vector belongs to the fencepost after it and what to the one
    before it: "even_odd" coordinates (K footnote 2), or "halves", for a BiLSTM the forward
    and the backward states.

    Errors: InputError for a hidden below 1 and for other sides.
    """
    if hidden < 1:
        raise InputError(f"ChartParser.v1: hidden is {hidden}: take 1 or more")
    if sides not in get_args(Sides):
        raise InputError(f"ChartParser.v1: sides is {sides!r}: take one of {get_args(Sides)}")
    head = head_layer(
        "span_scores",
        SpanScores,
        hidden=hidden,
        boundaries=has_boundaries(tok2vec),
        sides=sides,
    )
    return sentencewise(tok2vec, head)
