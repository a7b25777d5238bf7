"""`SentenceContext.v1`: token vectors that know what the sentences around them are about.

It stands around any model that gives token vectors, in the slot `tok2vec` of a component.
"""

from functools import partial

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.documentwise import documentwise
from spacy_psa.errors import check_sizes, naming
from spacy_psa.modules.documents import Scoring, SentenceContext, nearby_sentences
from spacy_psa.modules.products import Precision
from spacy_psa.sentences import document_numbers, sentence_bounds


def sentence_context(
    tok2vec: Model[list[Doc], list[Floats2d]],
    window: int = 2,
    width: int = 128,
    scoring: Scoring = "attention",
    dropout: float = 0.3,
    precision: Precision = "float32",
) -> Model:
    """Build `SentenceContext.v1`, which tells a token what the sentences around it are about.

    The sentences of a document go through `tok2vec` one by one. The mean of the vectors of its
    tokens stands for a sentence. Each sentence attends to itself and to its neighbours in the
    document, and each token takes of the result what a gate lets through. See
    `spacy_psa.modules.documents`. `DocumentMemory.v1` may be its `tok2vec`.

    A document is a Doc, whose sentence boundaries an earlier component or the corpus has set.
    Docs that follow each other with the same `doc.user_data["document"]` are one document too.

    Args:
        tok2vec: gives a vector for each token of a sentence. It gets whole docs if it listens to
            an earlier component.
        window: how many sentences on each side a sentence attends to; 0 for itself alone.
        width: the width of queries, keys and values, and of what the gate reads of a token.
        scoring: "attention", or "mean" to weigh all these sentences alike.
        dropout: dropout rate on what the sentences give to a token.
        precision: "float32", or "bfloat16" for the products of this layer in it. `tok2vec` has its
            own.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array for each doc, as wide as that of `tok2vec`.

    Raises:
        InputError: for settings that `SentenceContext` does not take, a window below 0, and if
            `tok2vec` gives rows for START and STOP (`boundaries = true`).

    Examples:
        >>> import spacy
        >>> from spacy.ml.models.tok2vec import build_hash_embed_cnn_tok2vec
        >>> tok2vec = build_hash_embed_cnn_tok2vec(
        ...     width=8, depth=1, embed_size=50, window_size=1, maxout_pieces=2,
        ...     subword_features=False, pretrained_vectors=None,
        ... )  # fmt: skip
        >>> model = sentence_context(tok2vec, width=4)
        >>> doc = spacy.blank("en")("Ada met Bob . Bob left")
        >>> model.initialize(X=[doc]).predict([doc])[0].shape
        (6, 8)
    """
    with naming("SentenceContext.v1"):
        check_sizes(least=0, window=window)
    settings = {"width": width, "scoring": scoring, "dropout": dropout, "precision": precision}
    return documentwise(
        "sentence_context",
        "SentenceContext.v1",
        tok2vec,
        SentenceContext,
        settings,
        partial(_places, window=window),
    )


def _places(docs: list[Doc], x: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Find the length of each sentence, (S,), and its neighbours, (S, 2 * window + 1)."""
    bounds = [sentence_bounds(doc) for doc in docs]
    lengths = numpy.array([end - start for own in bounds for start, end in own])
    documents = numpy.repeat(document_numbers(docs), [len(own) for own in bounds])
    filled = lengths > 0  # a doc without tokens counts as one sentence
    near = nearby_sentences(documents[filled], window)
    return torch.from_numpy(lengths[filled]), torch.from_numpy(near)
