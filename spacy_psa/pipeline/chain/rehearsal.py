"""Rehearsal, and new labels for a trained component: learning to repeat earlier predictions."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import set_dropout_rate, xp2torch
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.sentencewise import listeners
from spacy_psa.bridge.layers import differentiate, join_rows
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.span_tags import MISSING
from spacy_psa.pipeline.distillation import Teacher
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.cross_entropy import coarse_cross_entropy, cross_entropy


def rehearse(pipe: Any, examples: Iterable[Example], drop: float) -> float:
    """Learn to repeat what a component predicted when `nlp.resume_training` was called.

    Args:
        pipe: a `ChainLabeler`.
        examples: the docs; their annotation is not used.
        drop: dropout rate of spaCy's own layers.

    Returns:
        The cross entropy with the distributions of the copy that `nlp.resume_training` keeps; 0 if
        there is none.

    Raises:
        InputError: if the model listens to another component, which is not trained with it.
    """
    docs = [example.predicted for example in examples if len(example.predicted)]
    if pipe._rehearsal_model is None or not docs:
        return 0.0
    if listeners(pipe.model):
        raise InputError(
            f"{pipe.name}: it listens to another component, which nlp.rehearse does not run: "
            "use nlp.replace_listeners for an encoder of its own, then call nlp.resume_training "
            "again"
        )
    kept = pipe._rehearsal_model.predict(docs)
    before = _chain(pipe, kept, xp2torch(join_rows(pipe.model.ops.xp, kept)))
    return _learn(pipe, docs, drop, lambda now: cross_entropy(before, now))


def learn_labels(pipe: Any, teacher: Teacher, examples: Sequence[Example], drop: float) -> float:
    """Learn labels that the teacher does not know, and repeat the teacher for the others.

    Let A be the analyses of a sentence that agree with its annotation, and π(y') the analysis y'
    without the spans of new labels. The loss is the mean over sentences of

        -Σ_y p(y | y in π(A)) log Σ_{y' in A with π(y') = y} q(y'),

    where p is the teacher's distribution and q that of `pipe`; see `coarse_cross_entropy`. So the
    old labels keep their probabilities, and a new label only wins probability from O. Where the
    annotation has a new label, only the teacher's analyses with O at its tokens count.

    Only the new labels need to be annotated. Spans with old labels count as well. An annotated
    token outside of all spans has no new label, but may have an old one. A token without annotation
    may have any. The gradients are added to those of the model.

    Args:
        pipe: a `SpanLabeler`, whose first tags are those of the teacher.
        teacher: the component before the labels were added.
        examples: docs with their references.
        drop: dropout rate of spaCy's own layers.

    Returns:
        The loss, in nats a sentence.

    Raises:
        InputError: if a label of the annotation is not known.
    """
    docs = [example.predicted for example in examples]
    old = len(teacher.pipe.tags)

    def losses(chain: LinearChain) -> Tensor:
        gold = pipe._padded_gold(examples, chain)
        outside = gold == 0
        allowed = pipe._gold_allowed(gold.masked_fill(outside, MISSING))
        allowed[..., old:] &= ~outside[..., None]
        before = allowed[..., :old].clone()
        before[..., 0] |= allowed[..., old:].any(-1)
        taught = pipe._taught(teacher, docs).constrain(before)
        return coarse_cross_entropy(taught, chain, chain.constrain(allowed))

    return _learn(pipe, docs, drop, losses)


def _learn(
    pipe: Any, docs: list[Doc], drop: float, losses: Callable[[LinearChain], Tensor]
) -> float:
    """Add the gradients of the mean loss of the sentences of docs; return this mean."""
    set_dropout_rate(pipe.model, drop)
    scores, backprop = pipe.model.begin_update(docs)
    loss, gradients = differentiate(
        pipe.model, scores, lambda flat: losses(_chain(pipe, scores, flat)).mean()
    )
    backprop(gradients)
    return loss


def _chain(pipe: Any, scores: list[Floats2d], flat: Tensor) -> LinearChain:
    """Make the distribution of a model's scores, which are all rows of `flat`."""
    lengths = torch.tensor([len(array) for array in scores if len(array)])
    chain: LinearChain = pipe._chain(flat, lengths, legal=flat.shape[1] != pipe._outputs)
    return chain
