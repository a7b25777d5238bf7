"""How far one chain is from another: what a student loses that learns from a teacher."""

import torch
from torch import Tensor

from spacy_psa.structs.chain import LinearChain


def cross_entropy(teacher: LinearChain, student: LinearChain) -> Tensor:
    """Compute the cross entropy of two chains over the same tags, exactly.

    It is the expected negative log probability of a sequence under the student, if the teacher
    draws it. The score of a sequence is a sum over its pairs of tags, so the expectation needs the
    teacher's pairwise marginals alone: log Z of the student minus the sum, over all places and
    pairs, of the teacher's marginal times the student's log potential. The gradient with respect to
    the student's potentials is the difference of the two chains' expected counts.

    Args:
        teacher: the distributions of B sentences, which get no gradient.
        student: distributions of the same sentences.

    Returns:
        (B,) nats; infinite if the teacher gives a probability to what the student excludes.

    Raises:
        ValueError: if the two differ in their sentences or tags.

    Examples:
        >>> even = LinearChain.from_emissions(torch.zeros(1, 2, 2), torch.tensor([2]))
        >>> cross_entropy(even, even).exp()  # of 4 sequences
        tensor([4.])
    """
    if teacher.shape != student.shape or not torch.equal(teacher.lengths, student.lengths):
        raise ValueError(
            f"the teacher has sentences, tokens and tags {teacher.shape}, the student "
            f"{student.shape}: give both the same"
        )
    starts = teacher.marginals[:, 0].detach()
    pairs = teacher.pairwise_marginals.detach()
    scores = student.potentials
    # Not a plain product, because excluded pairs have the potential -inf and the marginal 0.
    first = torch.where(starts > 0, starts.double() * scores[:, 0, 0], 0.0).sum(1)
    rest = torch.where(pairs > 0, pairs.double() * scores, 0.0).sum((1, 2, 3))
    return student.log_partition - (first + rest).to(student.dtype)
