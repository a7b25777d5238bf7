"""`DocumentMemory.v1`: token vectors that know the other occurrences of their word.

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
from spacy_psa.architectures.sentencewise import ASKS, uncertainty
from spacy_psa.errors import check_rates, check_sizes, naming
from spacy_psa.modules.documents import DocumentMemory, Scoring, nearest_occurrences, without
from spacy_psa.modules.products import Precision
from spacy_psa.sentences import document_numbers

FLAGS: list[int | str] = ["IS_PUNCT", "IS_STOP", "IS_LOWER"]
"""What `content_words` reads of a token."""
NAME = "document_memory"
ARCHITECTURE = "DocumentMemory.v1"


def document_memory(
    tok2vec: Model[list[Doc], list[Floats2d]],
    occurrences: int = 20,
    width: int = 128,
    scoring: Scoring = "attention",
    dropout: float = 0.3,
    precision: Precision = "float32",
    content_words: bool = False,
    memory_dropout: float = 0.0,
    max_uncertainty: float | None = None,
) -> Model:
    """Build `DocumentMemory.v1`, which lets a token see the other occurrences of its word.

    The sentences of a document go through `tok2vec` one by one. Then each token attends to the
    vectors of the other tokens of the document with the same lower-cased word. See
    `spacy_psa.modules.documents`.

    A document is a Doc, whose sentence boundaries an earlier component or the corpus has set.
    Docs that follow each other with the same `doc.user_data["document"]` are one document too.

    Args:
        tok2vec: gives a vector for each token of a sentence. It gets whole docs if it listens to
            an earlier component.
        occurrences: the most occurrences that a token attends to; the nearest ones are taken.
        width: the width of queries, keys and values.
        scoring: "attention", or "mean" to weigh all occurrences alike.
        dropout: dropout rate on what a token takes from the others.
        precision: "float32", or "bfloat16" for the products of the memory in it. `tok2vec` has its
            own.
        content_words: whether punctuation and the language's stop words in lower case keep the
            vectors that `tok2vec` gives, and are no occurrences for others.
        memory_dropout: share of the tokens that training leaves without their memory, drawn anew
            each time. With it, the model also learns to annotate single sentences.
        max_uncertainty: leaves out the occurrences whose tags are more uncertain than that; null
            for none. The head above, of `CRF.v1` or `Softmax.v1`, scores the tags of a token by
            what `tok2vec` gives for it. Its uncertainty is the entropy of the tags as a share of
            log K, for K tags: 0 if one tag is certain, 1 if all are equally probable. See
            `spacy_psa.modules.chain_potentials`.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array for each doc, as wide as that of `tok2vec`.

    Raises:
        InputError: for settings that `DocumentMemory` does not take, and if `tok2vec` gives rows
            for START and STOP (`boundaries = true`). With `max_uncertainty`, if the model does not
            stand in the slot `tok2vec` of `CRF.v1` or `Softmax.v1`.

    Examples:
        >>> import spacy
        >>> from spacy.ml.models.tok2vec import build_hash_embed_cnn_tok2vec
        >>> tok2vec = build_hash_embed_cnn_tok2vec(
        ...     width=8, depth=1, embed_size=50, window_size=1, maxout_pieces=2,
        ...     subword_features=False, pretrained_vectors=None,
        ... )  # fmt: skip
        >>> model = document_memory(tok2vec, width=4)
        >>> doc = spacy.blank("en")("Ada met Bob . Bob left")
        >>> model.initialize(X=[doc]).predict([doc])[0].shape
        (6, 8)
    """
    with naming(ARCHITECTURE):
        check_sizes(occurrences=occurrences)
        if max_uncertainty is not None:
            check_rates(max_uncertainty=max_uncertainty)
    settings = {
        "width": width,
        "scoring": scoring,
        "dropout": dropout,
        "precision": precision,
        "memory_dropout": memory_dropout,
    }
    places = partial(
        _occurrences,
        most=occurrences,
        content_words=content_words,
        max_uncertainty=max_uncertainty,
    )
    model = documentwise(NAME, ARCHITECTURE, tok2vec, DocumentMemory, settings, places)
    if max_uncertainty is not None:
        model.attrs[ASKS] = ARCHITECTURE
    return model


def _occurrences(
    docs: list[Doc], x: Tensor, most: int, content_words: bool, max_uncertainty: float | None
) -> tuple[Tensor]:
    """Find the nearest occurrences of each token's word in its document: (N, k) int64."""
    words = numpy.concatenate([doc.to_array("LOWER") for doc in docs])
    documents = numpy.repeat(document_numbers(docs), [len(doc) for doc in docs])
    if content_words:
        flags = numpy.concatenate([doc.to_array(FLAGS) for doc in docs])
        punctuation, stop, lower = flags.astype(bool).T
        out = numpy.flatnonzero(punctuation | (stop & lower))
        documents[out] = -1 - numpy.arange(len(out))  # a document of its own for each
    found = nearest_occurrences(words, documents, most)
    if max_uncertainty is not None:
        uncertain = uncertainty(docs, x, ARCHITECTURE) > max_uncertainty
        found = without(found, uncertain.cpu().numpy())
    return (torch.from_numpy(found),)
