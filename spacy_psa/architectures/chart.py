"""The chart parser's model: Model[List[Doc], List[Floats2d]], scores of labelled spans."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.architectures.sentencewise import has_boundaries, sentencewise
from spacy_psa.bridge.layers import head_layer
from spacy_psa.errors import check_choice, check_sizes
from spacy_psa.modules.span_scores import Sides, SpanScores
from spacy_psa.modules.tag_scores import TagScores


def chart_parser(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden: int = 250,
    sides: Sides = "even_odd",
    tag_hidden: int | None = None,
) -> Model:
    """`ChartParser.v1`: a score for each span and label of a sentence (Kitaev2018 section 2.3).

    Gives an array (n (n + 1) / 2, L - 1) for each sentence of n tokens, by the spans' start
    and then end; its nO is L - 1, the labels without the null label, whose score is 0.

    tok2vec: n rows a sentence; then START and STOP are vectors of the head's own. Or n + 2
    from `FactoredTransformer.v1` with `boundaries = true`, where they take part in attention.
    hidden: width of the hidden layer over a span's vector (Kitaev2018's code: 250).

    sides: what of a token's vector belongs to the fencepost after it and what to the one
    before it: "even_odd" coordinates (Kitaev2018 footnote 2), or "halves", for a BiLSTM the forward
    and the backward states.

    tag_hidden: width of the hidden layer of a second head, which scores the tags of tokens
    (Kitaev2018's later code: 256); null for none. With it the output goes on, after the arrays of all
    sentences, with an array (n, tags) for each; the head is the model's ref "tags".

    Errors: InputError for a width below 1 and for other sides.
    """
    check_sizes(hidden=hidden, tag_hidden=tag_hidden)
    check_choice("sides", sides, Sides)
    boundaries = has_boundaries(tok2vec)
    of_spans = {"hidden": hidden, "boundaries": boundaries, "sides": sides}
    spans = head_layer("span_scores", SpanScores, of_spans)
    if tag_hidden is None:
        return sentencewise(tok2vec, spans)
    of_tags = {"hidden": tag_hidden, "boundaries": boundaries}
    tags = head_layer("tag_scores", TagScores, of_tags)
    model = sentencewise(tok2vec, _beside(spans, tags))
    model.set_ref("tags", tags)
    return model


def _beside(spans: Model, tags: Model) -> Model:
    """Two heads over the same vectors: the arrays of the first, then those of the second."""
    return Model("spans_and_tags", _forward, init=_init, layers=[spans, tags], dims={"nO": None})


def _forward(
    model: Model, vectors: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    spans, tags = model.layers
    of_spans, spans_backprop = spans(vectors, is_train)
    of_tags, tags_backprop = tags(vectors, is_train)

    def backprop(d: list[Floats2d]) -> list[Floats2d]:
        both = spans_backprop(d[: len(vectors)]), tags_backprop(d[len(vectors) :])
        return [one + other for one, other in zip(*both, strict=True)]

    return [*of_spans, *of_tags], backprop


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    spans, tags = model.layers
    spans.set_dim("nO", model.get_dim("nO"))
    for head in (spans, tags):
        head.initialize(X=X)
