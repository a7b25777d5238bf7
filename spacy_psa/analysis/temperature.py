"""The temperature at which a model's probabilities fit the truth best (Guo et al. 2017).

A trained model is usually too sure of itself. If all its log potentials φ are divided by one number
T, the order of all analyses stays the same, but the probability is spread out (T > 1) or
concentrated (T < 1):

    p_T(y | x) = exp(φ(x, y) / T) / Z_T(x)

Z_T(x) sums over the analyses that the component predicts from, the legal ones.

T is fitted to sentences that were not trained on. There it minimises the negative log likelihood of
their gold analyses y*, NLL(T) = -Σ log p_T(y* | x). If no annotation is missing, this is convex in
β = 1 / T, since log Z is. So its slope dNLL/dβ = Σ E[φ(x, y)] - φ(x, y*) has one zero, which
bisection finds.
"""

import math
from collections.abc import Iterable

import torch
from spacy.training import Example
from thinc.api import xp2torch
from thinc.types import Floats2d

from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import document_batches

LOWEST, HIGHEST = 0.05, 20.0
TOKENS = 4000  # whose likelihood is computed together
BATCH = 64  # docs that are scored together
Labeler = ChainLabeler | NestedSpanLabeler
PRECISION = 1e-4  # of T, relative to T


class Likelihood:
    """The negative log likelihood of gold analyses as a function of the temperature.

    The model computes the potentials once, and they are kept in memory: K² float32 numbers a token
    for K tags, or L numbers for each span and L labels.

    Args:
        pipe: a trained component. Its own temperature is not used.
        examples: predicted docs, with the annotation of the components before `pipe`, and their
            references. Here the annotation on the predicted docs is not evidence.
    """

    def __init__(self, pipe: Labeler, examples: Iterable[Example]):
        filled = [example for example in examples if len(example.predicted)]
        sizes = [len(example.predicted) for example in filled]
        self.pipe = pipe
        # Scored by document, since a model may read the docs of a document together.
        scored = [
            own
            for batch in document_batches(filled, BATCH)
            for own in pipe._potentials([eg.predicted for eg in batch])
        ]
        self.batches: list[tuple[list[Example], list[Floats2d]]] = []
        for places in batches_by_size(sizes, getattr(pipe, "batch_tokens", TOKENS)):
            arrays = [array for i in places for array in scored[i]]
            self.batches.append(([filled[i] for i in places], arrays))
        self.sentences = sum(len(array) > 0 for _, arrays in self.batches for array in arrays)

    def at(self, temperature: float) -> tuple[float, float]:
        """The negative log likelihood in nats a sentence, and its slope in β = 1 / temperature."""
        total, slope = 0.0, 0.0
        for examples, potentials in self.batches:
            beta = torch.tensor(1 / temperature, dtype=torch.float64, requires_grad=True)
            flat = xp2torch(self.pipe.model.ops.xp.concatenate(potentials))
            lengths = torch.tensor([len(array) for array in potentials if len(array)])
            log_prob = self.pipe._log_likelihood(flat, lengths, examples, beta.to(flat))
            nll = -log_prob.double().sum()
            nll.backward()
            total += float(nll.detach())
            assert beta.grad is not None
            slope += float(beta.grad)
        return total / self.sentences, slope / self.sentences


def fit_temperature(likelihood: Likelihood) -> float:
    """Find the temperature from LOWEST to HIGHEST with the lowest negative log likelihood.

    If there is no minimum between the two, the result is the better of them.

    Raises:
        ValueError: if there is no sentence.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> ner = nlp.add_pipe(
        ...     "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> doc = nlp.make_doc("Ada met Bob")
        >>> example = Example.from_dict(doc, {"entities": [(0, 3, "PER"), (8, 11, "PER")]})
        >>> optimizer = nlp.initialize(lambda: [example])
        >>> likelihood = Likelihood(ner, [example])
        >>> LOWEST <= fit_temperature(likelihood) <= HIGHEST
        True
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
        # If the slope in β is above 0, the log likelihood grows with T.
        low, high = (middle, high) if likelihood.at(math.exp(middle))[1] > 0 else (low, middle)
    return math.exp((low + high) / 2)
