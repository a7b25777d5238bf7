"""How often tags or spans occur in a sentence: exact means and variances."""

import torch
from torch import Tensor

from spacy_psa.ragged import to_device
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.distribution import recording
from spacy_psa.structs.nested_spans import NestedSpans


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
        inside = to_device(t < chain.lengths, marginals.device)[:, None, None]
        second = torch.where(inside, steps @ second + w * (2 * reached + w * here), second)
        first = torch.where(inside, reached + w * here, first)
    mean = first.sum(1)
    return mean, (second.sum(1) - mean**2).clamp(min=0.0)


def span_moments(spans: NestedSpans, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the mean and the variance of counts Σ weights[label] of a set, for each of F counts.

    If each span scores s + t · w, they are the first two derivatives of log Z by t, at t = 0.

    Args:
        spans: the distribution over the sets of spans of B sentences.
        weights: (L, F), what a span with a label adds to each count.

    Returns:
        The means and the variances, (B, F) float64 each.

    Examples:
        >>> spans = NestedSpans(torch.zeros(3, 1), torch.tensor([2]))  # 8 sets
        >>> [each.tolist() for each in span_moments(spans, torch.ones(1, 1))]
        [[[1.5]], [[0.75]]]
    """
    with recording():
        labelled = spans.labelled.detach().double()
        w = weights.to(labelled)
        t = labelled.new_zeros(len(spans.lengths), w.shape[1], requires_grad=True)
        tilted = spans.with_scores(labelled + t[to_device(spans.sentence, t.device)] @ w.T)
        (mean,) = torch.autograd.grad(tilted.log_partition.sum(), t, create_graph=True)
        variances = [
            torch.autograd.grad(each.sum(), t, retain_graph=True)[0][:, f]
            for f, each in enumerate(mean.T)
        ]
    return mean.detach(), torch.stack(variances, 1).clamp(min=0.0)
