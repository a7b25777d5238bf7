"""The model of `crf_spans`, Model[List[Doc], List[Floats2d]]: scores of labelled spans."""

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.architectures.sentencewise import check_one_row_a_token, sentencewise
from spacy_psa.bridge.layers import head_layer
from spacy_psa.bridge.shim import shim_of
from spacy_psa.errors import InputError, check_rates, check_sizes, naming
from spacy_psa.modules.span_scorer import SpanScorer

SPAN_SCORER = "span_scorer"


def span_scorer(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden: int = 150,
    longest: int | None = 30,
    dropout: float = 0.2,
) -> Model:
    """Build `SpanScorer.v1`, which scores labelled spans of sentences.

    Args:
        tok2vec: computes a vector for each token.
        hidden: width of the vectors of the first and the last token of a span (Yu2020: 150); see
            `spacy_psa.modules.span_scorer.SpanScorer`.
        longest: the most tokens of a span; None for no limit. Memory and time grow with it.
        dropout: dropout rate of these vectors (Yu2020: 0.2).

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (spans, L) for each sentence, whose rows are
        the spans of at most `longest` tokens ordered by start and end. Its nO is L, the number of
        labels; that of no label always has the score 0.

    Raises:
        InputError: if a size is below 1 or a rate not from 0 to 1, and if `tok2vec` has rows for
            START and STOP (`boundaries = true`).

    Examples:
        >>> import spacy
        >>> from spacy_psa.architectures.embed import word_embed
        >>> model = span_scorer(word_embed(width=8), hidden=4, longest=2)
        >>> model.set_dim("nO", 5)
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> _ = model.initialize(X=[doc])
        >>> model.predict([doc])[0].shape  # the spans of three tokens, and the labels
        (5, 5)
    """
    with naming("SpanScorer.v1"):
        check_sizes(hidden=hidden, longest=longest)
        check_rates(dropout=dropout)
    check_one_row_a_token("SpanScorer.v1", tok2vec)
    settings = {"hidden": hidden, "longest": longest, "dropout": dropout}
    return sentencewise(tok2vec, head_layer(SPAN_SCORER, SpanScorer, settings))


def longest_span(name: str, model: Model) -> int | None:
    """Find the most tokens of a span that a model scores; None for no limit.

    InputError if no head of `SpanScorer.v1` is in the model, or several with other limits.
    """
    heads = [shim_of(node) for node in model.walk() if node.name == SPAN_SCORER]
    limits = {head.cfg["longest"] for head in heads}
    if len(limits) != 1:
        raise InputError(
            f"{name}: its model ({model.name}) "
            + ("has several limits for spans" if limits else "does not score spans")
            + f": use spacy-psa.SpanScorer.v1 in [components.{name}.model], over any tok2vec"
        )
    return next(iter(limits))
