"""The losses of a parser for trees and for tags, over some of the sentences of a batch."""

from collections.abc import Callable, Sequence
from typing import Literal, cast

import numpy
import torch
from thinc.api import torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor
from torch.nn import functional as F

from spacy_psa.pipeline.parser.charts import span_tree
from spacy_psa.pipeline.parser.gold import UNKNOWN, Gold

Loss = Literal["max_margin", "log_likelihood"]


def tree_loss(
    scores: Sequence[Floats2d], batch: Sequence[int], gold: Gold, loss: Loss
) -> tuple[float, list[Floats2d]]:
    """Compute the share of some sentences in the mean loss of all sentences with trees.

    Args:
        scores: the scores of the spans of each of these sentences.
        batch: the numbers of these sentences.
        gold: the trees of the whole batch.
        loss: "max_margin", the hinge loss (Kitaev2018 section 2.1), or "log_likelihood", the
            negative log likelihood of the tree CRF.

    Returns:
        The share, and its gradient with respect to each array of `scores`.
    """

    def share(flat: Tensor) -> Tensor:
        dist = span_tree(flat, [gold.sentences[i] for i in batch])
        trees = [gold.trees[i] or [] for i in batch]
        losses = dist.hinge(trees) if loss == "max_margin" else -dist.log_prob(trees)
        return losses.sum() / gold.trees_known

    return _differentiate(share, scores)


def tag_loss(
    scores: Sequence[Floats2d], batch: Sequence[int], gold: Gold
) -> tuple[float, list[Floats2d]]:
    """Compute the share of some sentences in the mean negative log probability of all tokens' tags.

    Args:
        scores: the scores of the tags of each of these sentences' tokens.
        batch: the numbers of these sentences.
        gold: the tags of the whole batch.

    Returns:
        The share, and its gradient with respect to each array of `scores`.
    """
    right = torch.from_numpy(numpy.concatenate([gold.tags[i] for i in batch]))

    def share(flat: Tensor) -> Tensor:
        losses = F.cross_entropy(flat, right.to(flat.device), ignore_index=UNKNOWN, reduction="sum")
        return losses / max(gold.tags_known, 1)

    return _differentiate(share, scores)


def _differentiate(
    function: Callable[[Tensor], Tensor], scores: Sequence[Floats2d]
) -> tuple[float, list[Floats2d]]:
    """Compute a function of the scores, one sentence after the other, and its gradient."""
    sizes = [len(array) for array in scores]
    flat = torch.cat([xp2torch(array) for array in scores]).requires_grad_()
    value = function(flat)
    value.backward()
    assert flat.grad is not None
    gradients = [cast(Floats2d, torch2xp(part)) for part in flat.grad.split(sizes)]
    return float(value.detach()), gradients
