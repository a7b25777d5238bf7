"""New labels for a trained component, whose earlier predictions keep the others."""

from collections.abc import Sequence
from typing import Any

from spacy.training import Example
from torch import Tensor

from spacy_psa.pipeline.chain.span_tags import MISSING
from spacy_psa.pipeline.distillation import Teacher, taught
from spacy_psa.pipeline.rehearsal import learn
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.cross_entropy import coarse_cross_entropy


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
        repeated = taught(teacher, docs).constrain(before)
        return coarse_cross_entropy(repeated, chain, chain.constrain(allowed))

    return learn(pipe, docs, drop, losses)
