"""The analyses of a doc, for tags, chunks and trees alike: against enumeration."""

import math
from collections import Counter
from itertools import product

import numpy
import pytest
import spacy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.util import fix_random_seed

from spacy_psa.pipeline.analyses import best_sums
from tests.helpers.analyses import Truth, enumerate_doc, tag_path
from tests.helpers.chains import enumerate_sequences
from tests.helpers.nested import nested_sets
from tests.helpers.parsers import make_parser
from tests.helpers.pipelines import parameters, randomize, small_model, spans_of
from tests.helpers.span_trees import enumerate_trees
from tests.helpers.tasks import task_model
from tests.helpers.trees import flat, parse_tree

KINDS = ["crf_tagger", "crf_chunker", "crf_spans", "constituency_parser"]
WORDS = ["Ada", "met", "Evans"]


def made(kind):
    if kind == "constituency_parser":
        nlp, labels = make_parser(loss="log_likelihood"), ("S", "NP", "S NP")
    else:
        nlp, labels = spacy.blank("en"), ("A", "B")
        model = task_model("spans") if kind == "crf_spans" else small_model()
        nlp.add_pipe(kind, config={"model": model})
    pipe = nlp.get_pipe(nlp.pipe_names[0])
    for label in labels:
        pipe.add_label(label)
    fix_random_seed(0)
    nlp.initialize()
    randomize(pipe)
    for parameter in parameters(pipe):
        parameter.data.mul_(0.4)  # so that no analysis is certain
    return pipe


def enumerated(pipe, doc):
    """The analyses as sets of (start, end, label), and what each adds to which marginals."""
    n = len(doc)
    (scores,) = pipe.model.predict([doc])
    if hasattr(pipe, "_longest"):
        places = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
        sets = nested_sets(n, len(pipe.labels))
        paths = [[(places.index((i, j)), k - 1) for i, j, k in own] for own in sets]
        weights = [sum(float(scores[place]) for place in path) for path in paths]
        values = [frozenset((i, j, pipe.labels[k - 1]) for i, j, k in own) for own in sets]
    elif hasattr(pipe, "store"):
        truth = enumerate_doc(pipe, doc)
        paths = [list(enumerate(tag_path(spans, n, pipe.tags))) for spans in truth.values]
        return Truth([frozenset(spans) for spans in truth.values], truth.probabilities), paths
    elif hasattr(pipe, "parse"):
        places = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
        dense = torch.zeros(n + 1, n + 1, len(pipe.labels) + 1)
        for (i, j), row in zip(places, scores):
            dense[i, j, 1:] = torch.from_numpy(row)
        trees, weights = zip(*enumerate_trees(dense, n))
        paths = [[(places.index((i, j)), label - 1) for i, j, label in tree] for tree in trees]
        chains = [[(i, j, pipe.labels[label - 1].split()) for i, j, label in t] for t in trees]
        values = [frozenset((i, j, x) for i, j, xs in tree for x in xs) for tree in chains]
    else:
        k = len(pipe.tags)
        found = enumerate_sequences(torch.from_numpy(scores).view(n, k, k), n)
        weights = [each.score for each in found]
        paths = [list(enumerate(each.tags)) for each in found]
        values = [frozenset((i, i + 1, pipe.tags[tag]) for i, tag in path) for path in paths]
    weights = numpy.exp(numpy.array(weights) - max(weights))
    return Truth(values, weights / weights.sum()), paths


def read(pipe, analysis):
    """An analysis as in `enumerated`."""
    if hasattr(pipe, "store"):
        return frozenset(spans_of(analysis))
    if hasattr(pipe, "parse"):
        nodes, first = [], 0
        for parsed in map(parse_tree, map(flat, analysis)):
            nodes += [(first + start, first + end, x) for start, end, x in parsed.constituents]
            first += len(parsed.words)
        return frozenset(nodes)
    return frozenset((i, i + 1, tag) for i, tag in enumerate(analysis))


@pytest.fixture(scope="module", params=product(KINDS, (1, 3)), ids=str)
def asked(request):
    kind, length = request.param
    pipe = made(kind)
    doc = Doc(pipe.vocab, words=WORDS[:length])
    return pipe, doc, *enumerated(pipe, doc)


def check(pipe, analyses, truth):
    """Compare answers with those of all analyses one by one."""
    best = sorted(truth.probabilities, reverse=True)
    ranked = analyses.kbest(5)
    assert [math.exp(p) for p, _ in ranked] == pytest.approx(best[:5], rel=1e-3)
    for log_prob, analysis in ranked:
        place = truth.values.index(read(pipe, analysis))
        assert truth.probabilities[place] == pytest.approx(math.exp(log_prob), rel=1e-3)
    assert read(pipe, analyses.best) == truth.best
    assert analyses.entropy == pytest.approx(truth.entropy, abs=1e-3)
    spans = sorted(set().union(*truth.values))
    expected = [truth.of(span) for span in spans]
    assert analyses.posterior(spans) == pytest.approx(expected, abs=1e-4)
    drawn = Counter(read(pipe, analysis) for analysis in analyses.sample(400))
    assert drawn.keys() <= set(truth.values)
    shares = [drawn[value] / 400 for value in truth.values]
    numpy.testing.assert_allclose(shares, truth.probabilities, atol=0.1)


def test_all_answers_are_those_of_enumeration(asked):
    pipe, doc, truth, paths = asked
    (analyses,) = pipe.analyses([doc])
    check(pipe, analyses, truth)
    marginals = numpy.zeros_like(analyses.marginals)
    for path, probability in zip(paths, truth.probabilities):
        rows, columns = numpy.array(path, dtype=int).reshape(-1, 2).T
        marginals[rows, columns] += probability
    numpy.testing.assert_allclose(analyses.marginals, marginals, atol=1e-4)
    assert len(analyses.kbest(10**5)) == len(truth.values)


def test_all_answers_under_evidence_are_those_of_enumeration(asked):
    pipe, doc, truth, _ = asked
    (analyses,) = pipe.analyses([doc])
    span = next(iter(sorted(truth.best, reverse=True)), (0, 1, pipe.labels[0]))
    for evidence, keep in (
        ({"require": [span]}, lambda value: span in value),
        ({"forbid": [span]}, lambda value: span not in value),
    ):
        more = analyses.given(**evidence)
        check(pipe, more, truth.where(keep))
        assert more.log_evidence == pytest.approx(math.log(truth.share(keep)), abs=1e-3)
        assert more.given(**evidence).log_evidence == pytest.approx(more.log_evidence)


@pytest.mark.parametrize("kind", KINDS)
def test_the_analyses_of_a_doc_are_those_of_its_sentences(kind):
    pipe = made(kind)
    parts = [Doc(pipe.vocab, words=words) for words in (WORDS[:2], WORDS[2:])]
    whole = Doc(pipe.vocab, words=WORDS, sent_starts=[True, False, True])
    none, *alone, both = pipe.analyses([Doc(pipe.vocab), *parts, whole])
    assert none.kbest(3) == [(0.0, [])] and none.sample(2) == [[], []]
    assert none.entropy == 0.0 and none.marginals.shape == (0, both.marginals.shape[1])
    assert both.entropy == pytest.approx(sum(each.entropy for each in alone), rel=1e-4)
    rows = numpy.concatenate([each.marginals for each in alone])
    numpy.testing.assert_allclose(both.marginals, rows, atol=1e-5)
    sums = sorted((a + b for a, _ in alone[0].kbest(9) for b, _ in alone[1].kbest(9)), reverse=True)
    assert [log_prob for log_prob, _ in both.kbest(9)] == pytest.approx(sums[:9], abs=1e-4)
    first, second = (read(pipe, each.best) for each in alone)
    assert read(pipe, both.best) == first | {(s + 2, e + 2, x) for s, e, x in second}
    assert both.posterior([(1, 3, pipe.labels[0])]) == [0.0]
    (kept,) = pipe.analyses([whole.copy()])
    assert [*map(str, kept.on(whole).best)] == [*map(str, both.best)]


numbers = st.lists(st.floats(-5, 0), min_size=1, max_size=5).map(sorted).map(lambda x: x[::-1])


@settings(max_examples=60)
@given(lists=st.lists(numbers, max_size=4), n=st.integers(1, 30))
def test_best_sums_are_those_of_all_combinations(lists, n):
    found = best_sums([numpy.array(values) for values in lists], n)
    every = sorted((sum(values) for values in product(*lists)), reverse=True)
    numpy.testing.assert_allclose([total for total, _ in found], every[:n], atol=1e-12)
    places = [tuple(ranks.tolist()) for _, ranks in found]
    assert len(set(places)) == len(places)
    for (total, _), ranks in zip(found, places):
        assert total == pytest.approx(sum(v[i] for v, i in zip(lists, ranks)))
