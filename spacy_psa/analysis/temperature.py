"""The temperature that makes a model's probabilities fit the truth (Guo et al. 2017).

A trained model is mostly too sure of itself. Its log potentials φ divided by one number T
keep the order of all analyses, but spread the probability (T > 1) or gather it (T < 1):

    p_T(y | x) = exp(φ(x, y) / T) / Z_T(x)

T is fitted on sentences that were not trained on, where it minimises the negative log
likelihood NLL(T) = -Σ log p_T(y* | x) of their gold analyses. In β = 1 / T that is convex,
log Z being so, if no annotation is missing: its slope dNLL/dβ = Σ E[φ(x, y)] - φ(x, y*) has
one zero, which is found by bisection.
"""

import math
from collections.abc import Iterable

from spacy.training import Example
from thinc.types import Floats2d

from spacy_psa.pipeline.chain.sequence_labeler import SequenceLabeler
from spacy_psa.pipeline.component import batches_by_size

LOWEST, HIGHEST = 0.05, 20.0
PRECISION = 1e-4  # of T, relative


class Likelihood:
    """The negative log likelihood of gold analyses as a function of the temperature.

    pipe: a trained component, whose own temperature is not looked at.
    examples: their predicted docs with what the components before `pipe` write; their
    references with the truth. What stands on the predicted docs is no evidence here. The
    model computes their potentials once and they are kept: K² float32 a token for K tags.

    Errors: what `pipe.get_loss` raises for labels that it does not know.
    """

    def __init__(self, pipe: SequenceLabeler, examples: Iterable[Example]):
        filled = [example for example in examples if len(example.predicted)]
        sizes = [len(example.predicted) for example in filled]
        self.pipe = pipe
        self.batches: list[tuple[list[Example], list[Floats2d]]] = []
        for places in batches_by_size(sizes, pipe.batch_tokens):
            batch = [filled[i] for i in places]
            self.batches.append((batch, pipe.model.predict([eg.predicted for eg in batch])))
        self.sentences = sum(len(array) > 0 for _, arrays in self.batches for array in arrays)

    def at(self, temperature: float) -> tuple[float, float]:
        """NLL in nats a sentence, and its slope in β = 1 / temperature."""
        xp = self.pipe.model.ops.xp
        total, slope = 0.0, 0.0
        for examples, potentials in self.batches:
            scaled = [array / temperature for array in potentials]
            loss, gradients = self.pipe.get_loss(examples, scaled)
            # The loss of a batch is the mean or the sum over its sentences.
            weight = sum(len(a) > 0 for a in potentials) if self.pipe.reduction == "mean" else 1
            total += weight * loss
            slope += weight * sum(
                float(xp.vdot(gradient, array)) for gradient, array in zip(gradients, potentials)
            )
        return total / self.sentences, slope / self.sentences


def fit_temperature(likelihood: Likelihood) -> float:
    """The temperature from LOWEST to HIGHEST of the least negative log likelihood; one of
    these two where the likelihood still grows there.

    Errors: ValueError where there is no sentence.
    """
    if not likelihood.sentences:
        raise ValueError("there are no sentences to fit a temperature to")
    if likelihood.at(LOWEST)[1] <= 0:
        return LOWEST
    if likelihood.at(HIGHEST)[1] >= 0:
        return HIGHEST
    low, high = math.log(LOWEST), math.log(HIGHEST)
    while high - low > PRECISION:
        middle = (low + high) / 2
        # A slope above 0: the likelihood grows with T.
        low, high = (middle, high) if likelihood.at(math.exp(middle))[1] > 0 else (low, middle)
    return math.exp((low + high) / 2)
