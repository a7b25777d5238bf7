"""The chart parser's model, Model[List[Doc], List[Floats2d]]: scores of labelled spans."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.architectures.sentencewise import has_boundaries, sentencewise
from spacy_psa.bridge.layers import head_layer
from spacy_psa.errors import check_choice, check_sizes, naming
from spacy_psa.modules.span_scores import Sides, SpanScores, TagScores

SPAN_SCORES = "span_scores"
SPANS_AND_TAGS = "spans_and_tags"


def chart_parser(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden: int = 250,
    sides: Sides = "even_odd",
    tag_hidden: int | None = None,
) -> Model:
    """Build `ChartParser.v1`, which scores labelled spans of sentences (Kitaev2018 section 2.3).

    Args:
        tok2vec: computes n rows for a sentence of n tokens; the head then has vectors of its own
            for START and STOP. Or it computes n + 2 rows, if it is a `FactoredTransformer.v1` with
            `boundaries = true`, in which the attention includes START and STOP.
        hidden: width of the hidden layer over the vector of a span (250 in the code of
            Kitaev2018).
        sides: the parts of a token's vector that belong to the fenceposts after and before it:
            "even_odd" for the even and the odd coordinates (Kitaev2018 footnote 2), "halves" for
            its halves, which are the two directions of a BiLSTM.
        tag_hidden: width of the hidden layer of a second head, which scores the tags of tokens
            (256 in the later code of Kitaev2018); None for no such head.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (n (n + 1) / 2, L - 1) for each sentence of
        n tokens, whose rows are the spans ordered by start and end. Its nO is L - 1, the number
        of labels without the null label, which always scores 0. With `tag_hidden`, the arrays of
        all sentences are followed by an array (n, tags) for each sentence, and the second head is
        the ref "tags".

    Raises:
        InputError: if a width is below 1, or if there are no such `sides`.

    Examples:
        >>> import spacy
        >>> from spacy_psa.architectures.embed import word_embed
        >>> model = chart_parser(word_embed(width=8), hidden=4)
        >>> model.set_dim("nO", 5)
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> _ = model.initialize(X=[doc])
        >>> model.predict([doc])[0].shape  # the spans of three tokens, and the labels
        (6, 5)
    """
    with naming("ChartParser.v1"):
        check_sizes(hidden=hidden, tag_hidden=tag_hidden)
        check_choice("sides", sides, Sides)
    boundaries = has_boundaries(tok2vec)
    settings = {"hidden": hidden, "boundaries": boundaries, "sides": sides}
    spans = head_layer(SPAN_SCORES, SpanScores, settings)
    if tag_hidden is None:
        return sentencewise(tok2vec, spans)
    settings = {"hidden": tag_hidden, "boundaries": boundaries}
    tags = head_layer("tag_scores", TagScores, settings)
    # Two heads over the same vectors; the arrays of the first head come first.
    heads: Model = Model(
        SPANS_AND_TAGS, _forward, init=_init, layers=[spans, tags], dims={"nO": None}
    )
    model = sentencewise(tok2vec, heads)
    model.set_ref("tags", tags)
    return model


def tag_heads(model: Model) -> list[Model]:
    """Find the heads that score tags: the ref "tags" of a model, or of each one of an ensemble."""
    return [node.get_ref("tags") for node in model.walk() if node.has_ref("tags")]


def _forward(
    model: Model, vectors: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    spans, tags = model.layers
    span_scores, spans_backprop = spans(vectors, is_train)
    tag_scores, tags_backprop = tags(vectors, is_train)

    def backprop(d: list[Floats2d]) -> list[Floats2d]:
        both = spans_backprop(d[: len(vectors)]), tags_backprop(d[len(vectors) :])
        return [d_spans + d_tags for d_spans, d_tags in zip(*both, strict=True)]

    return [*span_scores, *tag_scores], backprop


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    spans, tags = model.layers
    spans.set_dim("nO", model.get_dim("nO"))
    for head in (spans, tags):
        head.initialize(X=X)
