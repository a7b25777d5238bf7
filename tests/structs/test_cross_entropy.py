"""The cross entropy of two chains against all sequences, and of two trees against all trees."""

import itertools

import numpy
import pytest
import torch

from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.cross_entropy import coarse_cross_entropy, cross_entropy
from spacy_psa.structs.pair_chain import PairChain, TagPairs
from spacy_psa.structs.tree import SpanTree
from tests.helpers.span_trees import enumerate_trees, random_scores

LENGTHS = torch.tensor([3, 1])
PAIRS = TagPairs(numpy.array([[True, False, True], [True, True, True], [False, True, True]]))


def dense(seed):
    random = torch.Generator().manual_seed(seed)
    potentials = torch.randn(2, 3, 3, 3, generator=random, dtype=torch.float64)
    return potentials.requires_grad_()


def flat(seed):
    random = torch.Generator().manual_seed(seed)
    potentials = torch.randn(4, len(PAIRS), generator=random, dtype=torch.float64)
    return potentials.requires_grad_()


def by_enumeration(teacher, student):
    found = []
    for row, length in enumerate(LENGTHS.tolist()):
        total = torch.tensor(0.0, dtype=torch.float64)
        one = torch.tensor([row])
        for tags in itertools.product(range(3), repeat=length):
            values = [torch.tensor(tags)]
            weight = teacher.select(one).log_prob(values).exp()[0]
            if weight > 0:
                total = total - weight.detach() * student.select(one).log_prob(values)[0]
        found.append(total)
    return torch.stack(found)


@pytest.mark.parametrize("teaches", ["dense", "pairs"])
@pytest.mark.parametrize("learns", ["dense", "pairs"])
def test_it_is_the_sum_over_all_sequences_and_so_is_its_gradient(teaches, learns):
    make = {
        "dense": lambda x: LinearChain(x, LENGTHS),
        "pairs": lambda x: PairChain(x, LENGTHS, PAIRS),
    }
    draw = {"dense": dense, "pairs": flat}
    legal = torch.zeros(3, 3, dtype=torch.bool)
    legal[PAIRS.previous, PAIRS.tag] = True
    teacher = make[teaches](draw[teaches](1)).constrain(transitions=legal)
    scores = draw[learns](2)
    student = make[learns](scores)
    got, expected = cross_entropy(teacher, student), by_enumeration(teacher, student)
    torch.testing.assert_close(got, expected)
    gradients = [torch.autograd.grad(loss.sum(), scores)[0] for loss in (got, expected)]
    torch.testing.assert_close(*gradients)
    assert gradients[0].any()


def test_of_a_chain_with_itself_it_is_the_entropy_and_no_gradient():
    scores = dense(3)
    chain = LinearChain(scores, LENGTHS)
    loss = cross_entropy(chain, chain)
    torch.testing.assert_close(loss, chain.entropy)
    (gradient,) = torch.autograd.grad(loss.sum(), scores)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient))


def test_it_is_infinite_where_the_student_excludes_what_the_teacher_says():
    teacher = LinearChain(dense(1), LENGTHS)
    student = LinearChain(dense(2), LENGTHS).constrain(start=torch.tensor([True, True, False]))
    assert (cross_entropy(teacher, student) == torch.inf).all()


def test_other_sentences_are_an_error():
    one, other = (LinearChain(dense(1), torch.tensor(lengths)) for lengths in ([3, 1], [3, 2]))
    with pytest.raises(ValueError, match="both must have the same"):
        cross_entropy(one, other)


@pytest.mark.parametrize("kind", ["dense", "pairs"])
def test_a_uniform_chain_gives_all_possible_sequences_the_same_probability(kind):
    start, legal = torch.tensor([True, True, False]), torch.zeros(3, 3, dtype=torch.bool)
    legal[PAIRS.previous, PAIRS.tag] = True
    scores = (dense if kind == "dense" else flat)(4)
    made = LinearChain(scores, LENGTHS) if kind == "dense" else PairChain(scores, LENGTHS, PAIRS)
    chain = made.constrain(transitions=legal, start=start)
    uniform = chain.uniform()
    assert not uniform.log_partition.requires_grad
    for row, length in enumerate(LENGTHS.tolist()):
        one = torch.tensor([row])
        values = [torch.tensor(tags) for tags in itertools.product(range(3), repeat=length)]
        of = {
            name: torch.stack([each.select(one).log_prob([tags])[0] for tags in values])
            for name, each in (("chain", chain), ("uniform", uniform))
        }
        possible = of["chain"] > -torch.inf
        assert 0 < possible.sum() < len(values)
        expected = torch.where(possible, -possible.sum().double().log(), -torch.inf)
        torch.testing.assert_close(of["uniform"], expected)
        score = torch.stack([chain.select(one).score([tags])[0] for tags in values])
        mean = score[possible].mean().detach()
        torch.testing.assert_close(chain.expected_score(uniform)[row].detach(), mean)


WIDE = torch.ones(5, 5, dtype=torch.bool)
WIDE[3, [0, 1, 2]] = WIDE[0, 4] = WIDE[[0, 1, 2, 4], 4] = False  # as after B, and before I


def coarse_by_enumeration(teacher, student, known):
    """The sum over all sequences of the teacher, with the student's that are one of them."""
    found = []
    for row, length in enumerate(LENGTHS.tolist()):
        one, sums = torch.tensor([row]), {}
        for tags in itertools.product(range(5), repeat=length):
            score = known.select(one).score([torch.tensor(tags)])[0]
            sums.setdefault(tuple(tag if tag < 3 else 0 for tag in tags), []).append(score)
        total = student.select(one).log_partition[0]
        for tags, scores in sums.items():
            weight = teacher.select(one).log_prob([torch.tensor(tags)]).exp()[0].detach()
            possible = torch.stack(scores)
            possible = possible[possible > -torch.inf]
            if weight > 0:
                total = total - weight * possible.logsumexp(0)
        found.append(total)
    return torch.stack(found)


@pytest.mark.parametrize("what", ["nothing", "some tags", "a new tag"])
def test_further_tags_are_summed_out_where_the_teacher_has_tag_0(what):
    random = torch.Generator().manual_seed(5)
    scores = torch.randn(2, 3, 5, 5, generator=random, dtype=torch.float64).requires_grad_()
    end = torch.tensor([True, True, True, False, True])
    student = LinearChain(scores, LENGTHS).constrain(transitions=WIDE, end=end)
    allowed = torch.ones(2, 3, 5, dtype=torch.bool)
    if what == "some tags":
        allowed[0, 1, [2, 4]] = allowed[1, 0, 1] = False
    elif what == "a new tag":
        allowed[0, 0] = torch.arange(5) == 3
        allowed[0, 1] = torch.arange(5) == 4
    known = student.constrain(allowed)
    coarse = allowed[..., :3].clone()
    coarse[..., 0] |= allowed[..., 3:].any(-1)
    teacher = LinearChain(dense(6), LENGTHS).constrain(coarse)
    got, expected = (
        of(teacher, student, known) for of in (coarse_cross_entropy, coarse_by_enumeration)
    )
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-6)
    gradients = [
        torch.autograd.grad(loss.sum(), scores, retain_graph=True)[0] for loss in (got, expected)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-6)
    assert got.isfinite().all() and gradients[0].any()


@pytest.mark.parametrize("kind", ["dense", "pairs"])
def test_without_further_tags_the_two_cross_entropies_are_equal(kind):
    teacher = LinearChain(dense(1), LENGTHS)
    legal = torch.zeros(3, 3, dtype=torch.bool)
    legal[PAIRS.previous, PAIRS.tag] = True
    teacher = teacher.constrain(transitions=legal)
    scores = (dense if kind == "dense" else flat)(2)
    student = LinearChain(scores, LENGTHS) if kind == "dense" else PairChain(scores, LENGTHS, PAIRS)
    losses = [of(teacher, student) for of in (coarse_cross_entropy, cross_entropy)]
    torch.testing.assert_close(*losses, rtol=1e-6, atol=1e-6)


def test_what_the_student_excludes_is_infinite_also_with_further_tags():
    teacher = LinearChain(dense(1), LENGTHS)
    student = LinearChain(torch.zeros(2, 3, 4, 4), LENGTHS)
    known = student.constrain(torch.arange(4).expand(2, 3, 4) > 0)
    assert coarse_cross_entropy(teacher, student, known).isfinite().all()  # 0 may be tag 3
    known = student.constrain(torch.arange(4).expand(2, 3, 4) % 3 > 0)
    assert (coarse_cross_entropy(teacher, student, known) == torch.inf).all()


def test_a_student_with_fewer_tags_is_an_error():
    with pytest.raises(ValueError, match="all tags of the teacher"):
        coarse_cross_entropy(
            LinearChain(torch.zeros(1, 1, 3, 3), torch.tensor([1])),
            LinearChain(torch.zeros(1, 1, 2, 2), torch.tensor([1])),
        )


@pytest.mark.parametrize("excluded", [0.0, 0.1])
def test_that_of_trees_is_the_sum_over_all_trees_and_so_is_its_gradient(path, excluded):
    lengths = torch.tensor([3, 1, 2])
    told, said = (random_scores(lengths, 3, seed=seed) for seed in (1, 2))
    if excluded:
        told[0, 1, 3] = -torch.inf
        told[0, 1, 3, 2] = 0.5
        said[0, 0, 2, 1] = told[0, 0, 2, 1] = -torch.inf
    teacher, scores = SpanTree(told, lengths), said.requires_grad_()
    student = SpanTree(scores, lengths)
    got, expected = cross_entropy(teacher, student), []
    for row, n in enumerate(lengths.tolist()):
        log_z, loss = float(teacher.log_partition[row]), torch.tensor(0.0, dtype=torch.float64)
        one = SpanTree(scores[row : row + 1, : n + 1, : n + 1], lengths[row : row + 1])
        for tree, score in enumerate_trees(told[row], n):
            loss = loss - numpy.exp(score - log_z) * one.log_prob([tree])[0]
        expected.append(loss)
    torch.testing.assert_close(got, torch.stack(expected))
    gradients = [torch.autograd.grad(x.sum(), scores)[0] for x in (got, torch.stack(expected))]
    torch.testing.assert_close(*(torch.nan_to_num(gradient) for gradient in gradients))
    assert gradients[0].nan_to_num().any()


def test_trees_of_other_sentences_or_labels_are_an_error():
    one = SpanTree.from_spans(torch.zeros(3, 2), torch.tensor([2]))
    for other in (torch.zeros(3, 1), torch.zeros(2, 2)):
        lengths = torch.tensor([2] if len(other) == 3 else [1, 1])
        with pytest.raises(ValueError, match="both must have the same"):
            cross_entropy(one, SpanTree.from_spans(other, lengths))
