"""How far one chain is from another: what a student loses that learns from a teacher."""

import torch
from torch import Tensor

from spacy_psa.structs.chain import LinearChain


def cross_entropy(teacher: LinearChain, student: LinearChain) -> Tensor:
    """Compute the cross entropy of two chains over the same tags, exactly.

    It is the expected negative log probability of a sequence under the student, if the teacher
    draws it: log Z of the student minus the expected score of a sequence. The gradient with respect
    to the student's potentials is the difference of the two chains' expected counts.

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
    return student.log_partition - student.expected_score(teacher).to(student.dtype)
