"""LinearChain against the enumeration of every tag sequence, with kernels and without."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from spacy_psa.structs.chain import LinearChain
from tests.helpers.chains import enumerate_sequences, log_total, random_potentials
from tests.helpers.structs import INF, TOLERANCE, on_both_paths, quick

LENGTHS = torch.tensor([4, 1, 3, 2, 5])


def padded(values: list[Tensor], n: int, fill: int = 0) -> Tensor:
    """(B, n) of one tag sequence for each sentence."""
    return torch.stack(
        [torch.cat([tags, tags.new_full((n - len(tags),), fill)]) for tags in values]
    )


@pytest.mark.parametrize("excluded", [0.0, 0.3])
def test_everything_agrees_with_enumeration(path, dtype, excluded):
    k, n = 3, 5
    potentials = random_potentials(LENGTHS, k, seed=3, excluded=excluded, dtype=dtype)
    chain = LinearChain(potentials, LENGTHS)
    best = chain.kbest(k**n + 2)
    close = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    assert chain.log_partition.dtype == chain.marginals.dtype == chain.entropy.dtype == dtype
    for b, length in enumerate(LENGTHS.tolist()):
        sequences = enumerate_sequences(potentials[b], length)
        assert sequences, "the seed should leave something possible"
        log_z = log_total(sequences)
        probs = [math.exp(s.score - log_z) for s in sequences]
        marginals, pairs = torch.zeros(n, k), torch.zeros(n, k, k)
        marginals, pairs = marginals.double(), pairs.double()
        for sequence, prob in zip(sequences, probs, strict=True):
            for t, tag in enumerate(sequence.tags):
                marginals[t, tag] += prob
                if t:
                    pairs[t, sequence.tags[t - 1], tag] += prob
        entropy = -sum(p * math.log(p) for p in probs)
        assert chain.log_partition[b].item() == pytest.approx(log_z, abs=TOLERANCE[dtype])
        assert chain.max[b].item() == pytest.approx(sequences[0].score, abs=TOLERANCE[dtype])
        assert chain.entropy[b].item() == pytest.approx(entropy, abs=TOLERANCE[dtype])
        assert chain.argmax[b].tolist() == list(sequences[0].tags)
        torch.testing.assert_close(chain.marginals[b].double(), marginals, **close)
        torch.testing.assert_close(chain.pairwise_marginals[b].double(), pairs, **close)
        assert len(best[b]) == len(sequences)
        for (log_prob, tags), sequence in zip(best[b], sequences, strict=True):
            assert tags.tolist() == list(sequence.tags)
            assert log_prob == pytest.approx(sequence.score - log_z, abs=TOLERANCE[dtype])


@pytest.mark.parametrize("excluded", [0.0, 0.3])
def test_log_prob_of_every_sequence(path, dtype, excluded):
    lengths = torch.tensor([3, 1, 2])
    potentials = random_potentials(lengths, 3, seed=8, excluded=excluded, dtype=dtype)
    chain = LinearChain(potentials, lengths)
    known = [enumerate_sequences(potentials[b], int(lengths[b])) for b in range(3)]
    scores = [{s.tags: s.score for s in sequences} for sequences in known]
    for tags in itertools.product(range(3), repeat=3):
        values = [torch.tensor(tags[:length]) for length in lengths.tolist()]
        for batch in (values, padded(values, 3, fill=-100)):
            for b, log_prob in enumerate(chain.log_prob(batch).tolist()):
                score = scores[b].get(tags[: int(lengths[b])], -INF)
                assert log_prob == pytest.approx(score - log_total(known[b]), abs=TOLERANCE[dtype])
                assert chain.score(batch)[b].item() == pytest.approx(score, abs=TOLERANCE[dtype])


@pytest.mark.parametrize("excluded", [0.0, 0.3])
def test_gradients_of_pairwise_marginals_are_those_of_finite_differences(path, excluded):
    lengths = torch.tensor([3, 1, 2])
    potentials = random_potentials(lengths, 3, seed=5, excluded=excluded)
    read = potentials.isfinite()

    def value(numbers: Tensor) -> Tensor:
        scores = potentials.masked_scatter(read, numbers)
        return LinearChain(scores, lengths).pairwise_marginals

    assert torch.autograd.gradcheck(value, potentials[read].requires_grad_())


def test_gradient_of_log_partition_is_the_pairwise_marginals(path, dtype):
    potentials = random_potentials(LENGTHS, 4, excluded=0.2, dtype=dtype).requires_grad_()
    chain = LinearChain(potentials, LENGTHS)
    chain.log_partition.sum().backward()
    with torch.no_grad():
        pairs, marginals = chain.pairwise_marginals, chain.marginals
    torch.testing.assert_close(potentials.grad[:, 1:], pairs[:, 1:])
    torch.testing.assert_close(potentials.grad[:, 0, 0], marginals[:, 0])
    assert (potentials.grad[:, 0, 1:] == 0).all()


def test_pairs_of_a_sentence_without_a_legal_sequence_have_no_probability(path, dtype):
    potentials = random_potentials(torch.tensor([3, 3]), 3, dtype=dtype)
    potentials[0, 1] = -INF
    pairs = LinearChain(potentials, torch.tensor([3, 3])).pairwise_marginals
    assert not pairs[0].any() and pairs[1].sum().item() == pytest.approx(2.0)


def test_an_excluded_sequence_has_no_gradient(path):
    potentials = random_potentials(torch.tensor([2, 2]), 2)
    potentials[0, 1, 0, 1] = -INF
    potentials.requires_grad_()
    chain = LinearChain(potentials, torch.tensor([2, 2]))
    log_prob = chain.log_prob(torch.tensor([[0, 1], [0, 1]]))
    assert log_prob[0] == -INF and log_prob[1].isfinite()
    log_prob.sum().backward()
    assert (potentials.grad[0] == 0).all() and (potentials.grad[1] != 0).any()


def test_ties_go_to_the_lowest_last_tag_then_the_lowest_before_it(path, dtype):
    lengths = torch.tensor([3, 2, 1])
    chain = LinearChain(torch.zeros(3, 3, 2, 2, dtype=dtype), lengths)
    assert [tags.tolist() for tags in chain.argmax] == [[0, 0, 0], [0, 0], [0]]
    ranked = [tags.tolist() for _, tags in chain.kbest(4)[0]]
    assert ranked == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    crossed = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=dtype).repeat(1, 2, 1, 1)
    crossed[0, 0] = 0.0  # 0 1 and 1 0 are equally good
    assert LinearChain(crossed, torch.tensor([2])).argmax[0].tolist() == [1, 0]


@quick
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    k=st.integers(1, 4),
    seed=st.integers(0, 10_000),
)
def test_both_paths_choose_the_same_among_many_ties(lengths, k, seed):
    lengths = torch.tensor(lengths)
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), int(lengths.max()), k, k)
    potentials = torch.randint(0, 2, shape, generator=generator).float()

    def choose():
        chain = LinearChain(potentials, lengths)
        best = [[(log_prob, tags.tolist()) for log_prob, tags in own] for own in chain.kbest(5)]
        return [tags.tolist() for tags in chain.argmax], best

    ours, theirs = on_both_paths(choose)
    assert ours[0] == theirs[0]
    for one, other in zip(ours[1], theirs[1], strict=True):
        assert [tags for _, tags in one] == [tags for _, tags in other]
        expected = [log_prob for log_prob, _ in other]
        assert [log_prob for log_prob, _ in one] == pytest.approx(expected, abs=1e-12)
    enumerated = [enumerate_sequences(p, n) for p, n in zip(potentials, lengths, strict=True)]
    assert ours[0] == [list(sequences[0].tags) for sequences in enumerated]


@quick
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    k=st.integers(1, 5),
    scale=st.sampled_from([0.1, 3.0, 2000.0]),
    excluded=st.sampled_from([0.0, 0.1, 0.4]),
    seed=st.integers(0, 10_000),
)
def test_both_paths_agree(lengths, k, scale, excluded, seed):
    lengths = torch.tensor(lengths)

    def compute():
        potentials = random_potentials(lengths, k, seed=seed, excluded=excluded, scale=scale)
        with torch.no_grad():
            chain = LinearChain(potentials, lengths)
            values = [chain.log_partition, chain.max, chain.marginals, chain.entropy]
            values.append(chain.pairwise_marginals)
            best = chain.kbest(3)
        values.append(torch.tensor([p for own in best for p, _ in own], dtype=torch.float64))
        values += [tags for own in best for _, tags in own]
        chain = LinearChain(potentials.requires_grad_(), lengths)
        chain.log_partition.sum().backward()
        return [*values, potentials.grad]

    for ours, theirs in zip(*on_both_paths(compute), strict=True):
        assert not ours.isnan().any()
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@quick
@given(seed=st.integers(0, 10_000), k=st.integers(1, 5), shift=st.floats(-50, 50))
def test_a_constant_at_a_place_moves_the_partition_and_nothing_else(path, seed, k, shift):
    lengths = torch.tensor([4, 2])
    potentials = random_potentials(lengths, k, seed=seed)
    moved = potentials.clone()
    moved[:, 1] += shift
    a, b = LinearChain(potentials, lengths), LinearChain(moved, lengths)
    torch.testing.assert_close(b.log_partition, a.log_partition + shift)
    torch.testing.assert_close(b.marginals, a.marginals)
    torch.testing.assert_close(b.entropy, a.entropy)
    torch.testing.assert_close(b.log_prob(b.argmax), a.log_prob(b.argmax))


@quick
@given(seed=st.integers(0, 10_000), k=st.integers(2, 6))
def test_marginals_sum_to_one_and_to_each_other(path, seed, k):
    lengths = torch.tensor([5, 1, 3])
    chain = LinearChain(random_potentials(lengths, k, seed=seed), lengths)
    places = (torch.arange(5) < lengths[:, None]).double()
    torch.testing.assert_close(chain.marginals.sum(2), places)
    inner = places[:, 1:, None]
    pairs = chain.pairwise_marginals[:, 1:]
    torch.testing.assert_close(pairs.sum(2), chain.marginals[:, 1:])
    torch.testing.assert_close(pairs.sum(3), chain.marginals[:, :-1] * inner)


def test_seventy_three_tags(dtype):
    lengths = torch.tensor([6, 1])
    potentials = random_potentials(lengths, 73, excluded=0.5, dtype=dtype)

    def compute():
        chain = LinearChain(potentials, lengths)
        best = [pair for own in chain.kbest(4) for pair in own]
        log_probs = torch.tensor([log_prob for log_prob, _ in best])
        values = [chain.log_partition, chain.marginals, chain.entropy, log_probs]
        return [*values, *chain.argmax, *(tags for _, tags in best)]

    for ours, theirs in zip(*on_both_paths(compute), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    chain = LinearChain(potentials, lengths)
    one = potentials[1, 0, 0].double()
    assert chain.log_partition[1].item() == pytest.approx(torch.logsumexp(one, 0).item(), abs=1e-5)
    torch.testing.assert_close(chain.marginals[1, 0].double(), one.softmax(0), atol=1e-5, rtol=1e-5)


def test_long_sentences_keep_their_precision_in_float32(path):
    lengths = torch.tensor([1500])
    exact = 10 * random_potentials(lengths, 3, scale=1.0) + 50  # log Z is about 100,000
    exact = exact.float().double()
    rounded = LinearChain(exact.float(), lengths)
    exact_chain = LinearChain(exact, lengths)
    tags = exact_chain.argmax
    assert torch.equal(rounded.argmax[0], tags[0])
    torch.testing.assert_close(rounded.marginals.double(), exact_chain.marginals)
    torch.testing.assert_close(rounded.log_prob(tags).double(), exact_chain.log_prob(tags))
    torch.testing.assert_close(rounded.entropy.double(), exact_chain.entropy)


def test_extreme_scores_do_not_underflow(path, dtype):
    # The only way out of the best tag at place 0 costs 10,000 nats.
    potentials = torch.zeros(1, 2, 2, 2, dtype=dtype)
    potentials[0, 0, 0] = torch.tensor([5000.0, 0.0])
    potentials[0, 1] = torch.tensor([[-INF, -10000.0], [-20000.0, -INF]])
    chain = LinearChain(potentials, torch.tensor([2]))
    assert chain.log_partition.item() == -5000.0
    assert chain.marginals[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert [log_prob for log_prob, _ in chain.kbest(2)[0]] == [0.0, -15000.0]
    assert chain.entropy.item() == 0.0


def test_from_emissions_is_the_sum_of_its_parts(path, dtype):
    generator = torch.Generator().manual_seed(0)
    lengths, k = torch.tensor([3, 1, 2]), 3
    emissions = torch.randn(3, 3, k, generator=generator, dtype=dtype)
    transitions = torch.randn(k, k, generator=generator, dtype=dtype)
    start, end = torch.randn(2, k, generator=generator, dtype=dtype)
    transitions[0, 1] = start[2] = end[0] = -INF
    for t, length in enumerate(lengths.tolist()):
        emissions[t, length:] = math.nan
    parts = [emissions, transitions, start, end]
    for part in parts:
        part.requires_grad_()
    chain = LinearChain.from_emissions(emissions, lengths, transitions, start, end)
    plain = LinearChain.from_emissions(emissions, lengths)
    for tags in itertools.product(range(k), repeat=3):
        batch = torch.tensor([tags] * 3)
        for b, length in enumerate(lengths.tolist()):
            alone = sum(emissions[b, t, tags[t]].item() for t in range(length))
            score = alone + start[tags[0]].item() + end[tags[length - 1]].item()
            score += sum(transitions[tags[t - 1], tags[t]].item() for t in range(1, length))
            assert chain.score(batch)[b].item() == pytest.approx(score, abs=1e-5)
            assert plain.score(batch)[b].item() == pytest.approx(alone, abs=1e-5)
    chain.log_partition.sum().backward()
    for part in parts:
        assert part.grad.isfinite().all()
    torch.testing.assert_close(emissions.grad, chain.marginals)
    torch.testing.assert_close(start.grad, chain.marginals[:, 0].sum(0))
    torch.testing.assert_close(end.grad, chain.marginals[torch.arange(3), lengths - 1].sum(0))
    torch.testing.assert_close(transitions.grad, chain.pairwise_marginals.sum((0, 1)))


def test_tilted_adds_the_scores_of_tags_to_each_sequence(path, dtype):
    lengths, k, n = torch.tensor([4, 1, 3]), 3, 4
    potentials = random_potentials(lengths, k, seed=5, excluded=0.2, dtype=dtype)
    scores = torch.randn(3, n, k, generator=torch.Generator().manual_seed(2)).to(dtype)
    found = LinearChain(potentials, lengths).tilted(scores).kbest(k**n)
    for b, length in enumerate(lengths.tolist()):
        wanted = {
            s.tags: s.score + sum(float(scores[b, t, tag]) for t, tag in enumerate(s.tags))
            for s in enumerate_sequences(potentials[b], length)
        }
        log_z = math.log(sum(map(math.exp, wanted.values())))
        told = {tuple(tags.tolist()): log_prob + log_z for log_prob, tags in found[b]}
        assert told == pytest.approx(wanted, abs=1e-5)


def test_constrained_is_the_distribution_given_the_evidence(path, dtype):
    lengths, k, n = torch.tensor([4, 1, 3]), 3, 4
    potentials = random_potentials(lengths, k, seed=4, dtype=dtype)
    allowed = torch.rand(3, n, k, generator=torch.Generator().manual_seed(1)) < 0.8
    transitions = torch.tensor([[1, 1, 0], [0, 1, 1], [1, 0, 1]]).bool()
    start, end = torch.tensor([1, 0, 1]).bool(), torch.tensor([1, 1, 0]).bool()
    chain = LinearChain(potentials, lengths)
    ends = {"start": start, "end": end}
    at_each = transitions.expand(3, n, k, k).clone()
    at_each[:, 0] = False  # does not matter: there is no transition to the first place
    given_evidence = [
        chain.constrain(allowed, transitions=transitions, **ends),
        chain.constrain(allowed, transitions=at_each, **ends),
        chain.constrain(allowed).constrain(transitions=transitions).constrain(**ends),
        LinearChain(potentials, lengths, allowed).constrain(transitions=transitions, **ends),
    ]
    for b, length in enumerate(lengths.tolist()):
        legal = [
            s
            for s in enumerate_sequences(potentials[b], length)
            if all(allowed[b, t, tag] for t, tag in enumerate(s.tags))
            and all(transitions[s.tags[t - 1], s.tags[t]] for t in range(1, length))
            and start[s.tags[0]]
            and end[s.tags[-1]]
        ]
        assert 0 < len(legal) < k**length
        for constrained in given_evidence:
            found = constrained.kbest(len(legal) + 1)[b]
            assert [tags.tolist() for _, tags in found] == [list(s.tags) for s in legal]
            expected = [sequence.score - log_total(legal) for sequence in legal]
            assert [p for p, _ in found] == pytest.approx(expected, abs=TOLERANCE[dtype])
    assert torch.equal(chain.constrain().potentials.nan_to_num(), potentials.nan_to_num())


ZEROS = torch.zeros(2, 3, 2, 2)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LinearChain(ZEROS[0], torch.tensor([3, 3])), r"\(B, n, K, K\)"),
        (lambda: LinearChain(ZEROS[..., :1], torch.tensor([3, 3])), r"\(B, n, K, K\)"),
        (lambda: LinearChain(ZEROS.long(), torch.tensor([3, 3])), "floating point"),
        (lambda: LinearChain(ZEROS, torch.tensor([3])), "int64 of shape"),
        (lambda: LinearChain(ZEROS, torch.tensor([3.0, 3.0])), "int64 of shape"),
        (lambda: LinearChain(ZEROS, torch.tensor([3, 0])), "from 1 to 3"),
        (lambda: LinearChain(ZEROS, torch.tensor([4, 1])), "from 1 to 3"),
        (lambda: LinearChain(ZEROS, torch.tensor([3, 3]), torch.ones(2, 3, 2)), "allowed"),
        (lambda: full().constrain(torch.ones(2, 3, 1).bool()), "allowed"),
        (lambda: full().constrain(transitions=torch.ones(2, 1).bool()), "transitions"),
        (lambda: full().constrain(transitions=torch.ones(2, 1, 2, 2).bool()), "transitions"),
        (lambda: full().constrain(start=torch.ones(3).bool()), "start"),
        (lambda: full().constrain(end=torch.ones(2)), "end"),
        (lambda: full().log_prob(torch.zeros(2, 2).long()), "tags must be"),
        (
            lambda: full().log_prob([torch.zeros(3).long()]),
            r"for \[3\] tokens, but the sentences have \[3, 3\]",
        ),
        (
            lambda: full().score([torch.zeros(3), torch.zeros(2)]),
            r"for \[3, 2\] tokens, but the sentences have \[3, 3\]",
        ),
        (lambda: full().log_prob(torch.full((2, 3), 2)), "from 0 to 1"),
        (lambda: full().score(torch.full((2, 3), -1)), "from 0 to 1"),
    ],
)
def test_what_does_not_fit_is_an_error(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def full() -> LinearChain:
    return LinearChain(ZEROS, torch.tensor([3, 3]))
