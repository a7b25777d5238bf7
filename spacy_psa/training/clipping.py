"""The callback that clips the gradients of all components of a pipeline together."""

from collections.abc import Callable
from functools import partial
from typing import Any

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from thinc.api import Optimizer

from spacy_psa.bridge.optimizer import clip_gradients
from spacy_psa.errors import check_amounts, naming


def joint_clipping(max_norm: float = 1.0) -> Callable[[Language, dict[str, Any]], None]:
    """Build the callback `joint_clipping.v1`, which limits the joint norm of all gradients.

    It is for [training.before_update], where several components are trained together, such as a
    tok2vec or a transformer and the components that listen to it. `max_grad_norm` of a component
    only counts its own gradients, and other packages' components limit none together.

    spaCy's training loop computes all gradients of a step before the first component updates its
    weights. This component then first scales the gradients of all.

    Args:
        max_norm: the largest joint L2 norm.

    Raises:
        InputError: if `max_norm` is below 0 or no number.
    """
    with naming("joint_clipping.v1"):
        check_amounts(max_norm=max_norm)

    def before_update(nlp: Language, step: dict[str, Any]) -> None:
        pipes: list[Any] = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, TrainablePipe)]

        def clip_first(finish_update: Callable[[Optimizer], None], sgd: Optimizer) -> None:
            restore()
            clip_gradients([pipe.model for pipe in pipes], max_norm)
            finish_update(sgd)

        def restore() -> None:
            for pipe in pipes:
                vars(pipe).pop("finish_update", None)

        restore()  # a step that was left out has changed no weights
        for pipe in pipes:
            pipe.finish_update = partial(clip_first, pipe.finish_update)

    return before_update
