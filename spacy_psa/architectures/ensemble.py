"""Several models in one: the mean of their log potentials."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.architectures.sentencewise import mean_scores
from spacy_psa.errors import InputError


def ensemble(*models: Model[list[Doc], list[Floats2d]]) -> Model:
    """Build `Ensemble.v1`, which gives the mean of the log potentials of several models.

    The mean of the log potentials of chains is that of a chain again: the geometric mean of their
    distributions, normalised over all analyses. The same holds for the scores of spans and the
    distribution over trees. So whatever is exact for one model is exact for several. `spacy-psa
    ensemble` makes one of trained pipelines.

    Args:
        models: models that `CRF.v1` or `Softmax.v1` has built, for the same tags; or models that
            `ChartParser.v1` has built, for the same labels, all with a tag head or all without.

    Returns:
        Model[List[Doc], List[Floats2d]] with the arrays of the models.

    Raises:
        InputError: if there are no models.

    Examples:
        >>> import spacy
        >>> from spacy.ml.models.tok2vec import build_hash_embed_cnn_tok2vec
        >>> from spacy_psa.architectures.crf import crf
        >>> def make():
        ...     return crf(build_hash_embed_cnn_tok2vec(
        ...         width=8, depth=1, embed_size=50, window_size=1, maxout_pieces=2,
        ...         subword_features=False, pretrained_vectors=None,
        ...     ))  # fmt: skip
        >>> model = ensemble(make(), make())
        >>> model.set_dim("nO", 5)
        >>> doc = spacy.blank("en")("Ada met Bob")
        >>> _ = model.initialize(X=[doc])
        >>> one, other = (part.predict([doc])[0] for part in model.layers)
        >>> bool((abs(model.predict([doc])[0] - (one + other) / 2) < 1e-6).all())
        True
    """
    if not models:
        raise InputError("Ensemble.v1: there are no models: give at least one")
    return Model("ensemble", _forward, init=_init, layers=list(models), dims={"nO": None})


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    scores, backprops = zip(*(layer(docs, is_train) for layer in model.layers))

    def backprop(gradients: list[Floats2d]) -> list[Any]:
        shares = [gradient / len(backprops) for gradient in gradients]
        for layer_backprop in backprops:
            layer_backprop(shares)
        return []

    return mean_scores(list(scores)), backprop


def _init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    for layer in model.layers:
        layer.set_dim("nO", model.get_dim("nO"))
        layer.initialize(X=X, Y=Y)
