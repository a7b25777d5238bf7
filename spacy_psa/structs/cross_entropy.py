"""Cross entropies of distributions: the loss of a student that learns from a teacher."""

from typing import TypeVar

import torch
from torch import Tensor

from spacy_psa.ragged import to_device
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.nested_spans import NestedSpans
from spacy_psa.structs.tree import SpanTree

Distribution = TypeVar("Distribution", LinearChain, NestedSpans, SpanTree)
Smoothed = TypeVar("Smoothed", LinearChain, NestedSpans)

RARE = 1e-8
"""The probability below which a run of tags does not count."""
RAREST = 1e-10
"""The probability below which such a run does not count together with the tag after it."""
EXCLUDED = -1e12  # stands for -inf, which has no gradient in a sum of logarithms


def cross_entropy(teacher: Distribution, student: Distribution) -> Tensor:
    """Compute the cross entropy of two distributions over the same analyses, exactly.

    It is the expected negative log probability of an analysis under the student, if the teacher
    draws it: log Z of the student minus the expected score of an analysis. The gradient with
    respect to the student's potentials is the difference of the two expected counts.

    Args:
        teacher: the distributions of B sentences, which get no gradient.
        student: distributions of the same sentences.

    Returns:
        (B,) nats; infinite if the student excludes an analysis that the teacher does not.

    Raises:
        ValueError: if the two differ in their sentences, or in their tags or labels.

    Examples:
        >>> even = LinearChain.from_emissions(torch.zeros(1, 2, 2), torch.tensor([2]))
        >>> cross_entropy(even, even).exp()  # of 4 sequences
        tensor([4.])
    """
    if teacher.shape != student.shape or not torch.equal(teacher.lengths, student.lengths):
        raise ValueError(
            f"the teacher has sentences, tokens and labels {teacher.shape}, the student "
            f"{student.shape}: both must have the same"
        )
    return student.log_partition - student.expected_score(teacher).to(student.dtype)


def smoothed(losses: Tensor, student: Smoothed, share: Tensor) -> Tensor:
    """Mix losses with the cross entropy with the uniform distribution over all analyses.

    This is label smoothing (Szegedy et al. 2016 section 7), for analyses in the place of classes.

    Args:
        losses: (B,) the losses of the sentences, in nats.
        student: their distributions.
        share: (B,) the share of the cross entropy, from 0 to 1.

    Returns:
        (B,) nats.
    """
    return torch.lerp(losses, cross_entropy(student.uniform(), student), share)


def coarse_cross_entropy(
    teacher: LinearChain, student: LinearChain, known: LinearChain | None = None
) -> Tensor:
    """Compute the cross entropy of a chain and one that has further tags, exactly.

    The teacher has the first K tags of the student. It knows none of the others, and where a token
    has one of them, it expects tag 0. Let π(y') be y' with 0 in the place of each further tag. The
    loss of a sentence is the cross entropy of the teacher and of the student's π(y'),

        log Z(student) - Σ_y p(y) log Σ_{y' with π(y') = y} exp s(y'),

    where p is the teacher's probability of a sequence and s(y') the student's score of one. The
    inner sum is a product over the runs of tag 0 in y. The sum over y is therefore one over the
    places of such runs, whose probabilities follow from the teacher's pairwise marginals, and over
    the pairs of other tags. Runs with a probability below 1e-8 are left out, and runs with the tag
    after them below 1e-10.

    Args:
        teacher: the distributions of B sentences over K tags, which get no gradient.
        student: distributions of the same sentences over K' >= K tags.
        known: the student given what is known of the sentences, from which s is taken; by default
            the student.

    Returns:
        (B,) nats; infinite if the student excludes a sequence that the teacher does not.

    Raises:
        ValueError: if the two differ in their sentences, or the student has fewer tags.

    Examples:
        >>> lengths = torch.tensor([2])
        >>> teacher = LinearChain.from_emissions(torch.tensor([[[5.0, 0.0]] * 2]), lengths)
        >>> student = LinearChain.from_emissions(torch.tensor([[[4.0, 0.0, 5.0]] * 2]), lengths)
        >>> coarse_cross_entropy(teacher, student) > cross_entropy(teacher, teacher)
        tensor([True])
    """
    (batch, longest, tags), shape = teacher.shape, student.shape
    if shape[:2] != (batch, longest) or shape[2] < tags or any(teacher.lengths != student.lengths):
        raise ValueError(
            f"the teacher has sentences, tokens and tags {teacher.shape}, the student {shape}: "
            "both must have the same sentences, and the student all tags of the teacher"
        )
    given, every = student if known is None else known, torch.arange(tags)
    nothing, run = torch.zeros_like(every), torch.tensor([0, *range(tags, shape[2])])
    single = teacher.marginals.detach().double()

    def counts(previous: Tensor, tag: Tensor) -> Tensor:
        return teacher.marginals_of(previous, tag).detach().double()

    def scores(previous: Tensor, tag: Tensor) -> Tensor:
        potentials = given.potentials_of(previous.flatten(), tag.flatten()).double()
        return potentials.masked_fill(potentials == -torch.inf, EXCLUDED).unflatten(2, tag.shape)

    before, tag = teacher.possible
    others = (before > 0) & (tag > 0)
    before, tag = before[others], tag[others]
    total = _weighted(counts(before, tag), scores(before, tag)).sum((1, 2))
    total = total + _weighted(single[:, 0, 1:], scores(nothing, every)[:, 0, 1:]).sum(1)
    # A run begins at the start of a sentence or after another tag.
    begins = counts(every, nothing)
    begins[..., 0], begins[:, 0, 0] = 0.0, single[:, 0, 0]
    after = single[:, :-1, 0, None].clamp(min=torch.finfo(single.dtype).tiny)
    follows = torch.nn.functional.pad(counts(nothing, every)[:, 1:] / after, (0, 0, 1, 0))
    enter = scores(*torch.meshgrid(every, run, indexing="ij"))
    inside = scores(*torch.meshgrid(run, run, indexing="ij"))
    leave = scores(*torch.meshgrid(run, every, indexing="ij"))
    rows, at, before = (begins > RARE).nonzero().T
    weights, sums = begins[rows, at, before], enter[rows, at, before]
    last = to_device(teacher.lengths, rows.device) - 1
    ended: list[list[Tensor]] = []
    while len(rows):
        ends = at == last[rows]
        whole = _weighted(weights[ends], sums[ends].logsumexp(1))
        total = total.index_add(0, rows[ends], whole)
        rows, at, weights, sums = rows[~ends], at[~ends] + 1, weights[~ends], sums[~ends]
        shares = weights[:, None] * follows[rows, at, 1:]
        which, tag = (shares > RAREST).nonzero().T
        ended.append([shares[which, tag], sums[which], rows[which], at[which], tag + 1])
        weights = weights * follows[rows, at, 0]
        sums = (sums[:, :, None] + inside[rows, at]).logsumexp(1)
        stay = weights > RARE
        rows, at, weights, sums = rows[stay], at[stay], weights[stay], sums[stay]
    if ended:
        # All at once: the gradient of each look-up has the size of `leave`.
        weights, sums, rows, at, tag = (torch.cat(parts) for parts in zip(*ended))
        whole = _weighted(weights, (sums + leave[rows, at, :, tag]).logsumexp(1))
        total = total.index_add(0, rows, whole)
    return student.log_partition - total.to(student.dtype)


def _weighted(weights: Tensor, scores: Tensor) -> Tensor:
    """Multiply scores by probabilities; -inf for what is probable, but excluded."""
    scores = scores.masked_fill(scores < EXCLUDED / 2, -torch.inf)
    return torch.where(weights > 0, weights.double() * scores, 0.0)
