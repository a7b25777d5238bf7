"""How often tags occur in a sentence: exact means and variances under a linear chain."""

import torch
from torch import Tensor

from spacy_psa.structs.chain import LinearChain


@torch.no_grad()
def count_moments(chain: LinearChain, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the mean and the variance of counts Σ_t weights[y_t], for each of F counts.

    A chain is a Markov chain. So with T_t(y', y) = P(y_t = y | y_{t-1} = y'), the moments
    E[N_t^k; y_t = y] of the counts up to a place follow from those before it, as in the
    second-order expectation semiring (Li and Eisner 2009 section 3), here over probabilities:

        E[N_t; y]  = Σ_y' T(y', y) E[N_{t-1}; y'] + w(y) P(y_t = y)
        E[N_t²; y] = Σ_y' T(y', y) (E[N_{t-1}²; y'] + 2 w(y) E[N_{t-1}; y']) + w(y)² P(y_t = y)

    Args:
        chain: the distribution over the tags of B sentences.
        weights: (K, F) or (B, K, F), what a tag adds to each count.

    Returns:
        The means and the variances, (B, F) float64 each.

    Examples:
        >>> chain = LinearChain.from_emissions(torch.zeros(1, 3, 2), torch.tensor([3]))
        >>> [each.tolist() for each in count_moments(chain, torch.tensor([[0.0], [1.0]]))]
        [[[1.5]], [[0.75]]]
    """
    marginals, pairs = chain.marginals.double(), chain.pairwise_marginals
    w = weights.to(marginals)
    w = w if w.dim() == 3 else w[None]
    first = w * marginals[:, 0, :, None]
    second = w * first
    for t in range(1, marginals.shape[1]):
        before = marginals[:, t - 1, :, None]
        # A tag of probability 0 has moments of 0.
        steps = (pairs[:, t].double() / before.masked_fill(before == 0, 1.0)).transpose(1, 2)
        here = marginals[:, t, :, None]
        reached = steps @ first
        inside = (t < chain.lengths).to(marginals.device)[:, None, None]
        second = torch.where(inside, steps @ second + w * (2 * reached + w * here), second)
        first = torch.where(inside, reached + w * here, first)
    mean = first.sum(1)
    return mean, (second.sum(1) - mean**2).clamp(min=0.0)
