"""What is predicted: n best analyses, the highest expected F1, all above a threshold."""

import math
from itertools import product

import numpy
import pytest
import spacy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.cli.find_threshold import find_threshold
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import Adam

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.expected_f1 import best_expected_f1
from spacy_psa.pipeline.chain.kbest import best_sums
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain

LABELS = ["A", "B"]


def random_chain(kind, lengths, seed, scale):
    scheme = SpanScheme(LABELS, kind)
    k = len(scheme.tags)
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths), k, k)
    potentials = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    moves, start, end = map(torch.from_numpy, scheme.legal())
    chain = LinearChain(potentials, torch.tensor(lengths))
    return scheme, chain.constrain(moves=moves, start=start, end=end)


# n best


@pytest.mark.parametrize("head", ["label_pair", "softmax"])
@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
def test_nbest_is_the_order_of_enumeration(tools, enumeration, head, scheme):
    nlp = tools.make_nlp(tools.small_model(head), scheme=scheme)
    tools.train(nlp, 3, Adam(0.05))
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc("Ada met Evans")
    truth = enumeration.of_doc(ner, doc)
    best = sorted(zip(truth.probabilities, truth.values), reverse=True)
    for n in (1, 7, len(best), 10_000):
        found = ner.nbest(doc, n)
        assert len(found) == min(n, len(best))
        analyses = [tuple((s.start, s.end, s.label_) for s in spans) for _, spans in found]
        assert len(set(analyses)) == len(analyses)
        log_probs = [log_prob for log_prob, _ in found]
        expected = numpy.log([p for p, _ in best[:n]])
        numpy.testing.assert_allclose(log_probs, expected, atol=1e-6)
        assert log_probs == sorted(log_probs, reverse=True)
        for log_prob, analysis in zip(log_probs, analyses):
            of = truth.probabilities[truth.values.index(analysis)]
            assert log_prob == pytest.approx(math.log(of), abs=1e-6)
    assert sum(math.exp(log_prob) for log_prob, _ in found) == pytest.approx(1.0)


def test_nbest_of_a_doc_of_several_sentences_is_of_the_whole(tools, enumeration):
    nlp = tools.random_nlp()
    ner = nlp.get_pipe("ner")
    parts = [["Ada", "left"], ["Evans"], ["in", "Bath"]]
    words = [word for part in parts for word in part]
    starts = [i == 0 for part in parts for i in range(len(part))]
    doc = Doc(nlp.vocab, words=words, sent_starts=starts)
    truths = [enumeration.of_doc(ner, Doc(nlp.vocab, words=part)) for part in parts]
    expected = {}
    for combined in product(*(zip(truth.values, truth.probabilities) for truth in truths)):
        offsets = (0, 2, 3)
        spans = tuple(
            (s + offset, e + offset, x)
            for offset, (value, _) in zip(offsets, combined)
            for s, e, x in value
        )
        expected[spans] = sum(math.log(max(p, 1e-300)) for _, p in combined)
    best = sorted(expected.values(), reverse=True)
    found = ner.nbest(doc, 40)
    numpy.testing.assert_allclose([log_prob for log_prob, _ in found], best[:40], atol=1e-4)
    for log_prob, spans in found:
        key = tuple((span.start, span.end, span.label_) for span in spans)
        assert log_prob == pytest.approx(expected[key], abs=1e-4)
        assert all(span.doc is doc for span in spans)
    assert len(ner.nbest(doc, 10**6)) == len(expected)


def test_nbest_of_many_docs_is_that_of_each(tools):
    nlp = tools.random_nlp()
    ner = nlp.get_pipe("ner")
    docs = [nlp.make_doc(text) for text in ["", *tools.texts[:4]]]
    together = ner.nbest_batch(docs, 3)
    assert together[0] == [(0.0, [])]
    for doc, found in zip(docs, together, strict=True):
        alone = ner.nbest(doc, 3)
        assert [spans for _, spans in found] == [spans for _, spans in alone]
        assert [p for p, _ in found] == pytest.approx([p for p, _ in alone], abs=1e-5)
    assert tools.entities(nlp(docs[1].text)) == [
        (span.start, span.end, span.label_) for span in together[1][0][1]
    ]


numbers = st.lists(st.floats(-5, 0), min_size=1, max_size=5).map(sorted).map(lambda x: x[::-1])


@settings(max_examples=60, deadline=None)
@given(lists=st.lists(numbers, max_size=4), n=st.integers(1, 30))
def test_best_sums_are_those_of_all_combinations(lists, n):
    found = best_sums([numpy.array(values) for values in lists], n)
    every = sorted((sum(values) for values in product(*lists)), reverse=True)
    numpy.testing.assert_allclose([total for total, _ in found], every[:n], atol=1e-12)
    places = [tuple(ranks.tolist()) for _, ranks in found]
    assert len(set(places)) == len(places)
    for (total, _), ranks in zip(found, places):
        assert total == pytest.approx(sum(v[i] for v, i in zip(lists, ranks)))


# Minimum Bayes risk


def f1(chosen, truth):
    if not chosen and not truth:
        return 1.0
    return 2 * len(set(chosen) & set(truth)) / (len(chosen) + len(truth))


def expected_f1(chosen, truth):
    return sum(p * f1(chosen, value) for value, p in zip(truth.values, truth.probabilities))


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@settings(max_examples=12, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([0.3, 1.0, 3.0]),
)
def test_mbr_has_the_highest_expected_f1_of_all_analyses(enumeration, kind, lengths, seed, scale):
    """Of a doc of one or two sentences, against every set of spans."""
    scheme, chain = random_chain(kind, lengths, seed, scale)
    values, probabilities, offset = [()], numpy.ones(1), 0
    for row, length in enumerate(lengths):
        part = enumeration.all(chain.potentials[row, :length], LABELS, scheme.tags)
        values = [
            (*value, *((s + offset, e + offset, x) for s, e, x in more))
            for value in values
            for more in part.values
        ]
        probabilities = numpy.outer(probabilities, part.probabilities).ravel()
        offset += length
    truth = enumeration.Distribution(values, probabilities)
    likely = [v for v, p in zip(values, probabilities) if p > 1e-12]
    best = max(expected_f1(chosen, truth) for chosen in likely)
    offsets = numpy.cumsum([0, *lengths])
    found = [
        (s + offsets[row], e + offsets[row], LABELS[label])
        for row, spans in enumerate(best_expected_f1(chain, scheme))
        for s, e, label in spans
    ]
    assert tuple(found) in values
    assert expected_f1(found, truth) == pytest.approx(best, abs=1e-9)


def test_mbr_is_not_the_most_probable_analysis():
    """Nothing, at 0.4; or A [0, 1), alone at 0.3 or with A [1, 2) at 0.3."""
    scheme = SpanScheme(["A"], "BIO")
    potentials = torch.full((1, 2, 3, 3), -torch.inf, dtype=torch.float64)
    potentials[0, 0, 0, :2] = 0.0
    potentials[0, 1, 0, 0] = math.log(0.4)
    potentials[0, 1, 1, 0] = potentials[0, 1, 1, 1] = math.log(0.3)
    chain = LinearChain(potentials, torch.tensor([2]))
    assert chain.argmax.tolist() == [[0, 0]]
    assert best_expected_f1(chain, scheme) == [[(0, 1, 0)]]  # 0.3 + 0.3 · 2/3
    potentials[0, 1, 1, 2], potentials[0, 1, 1, 1] = math.log(0.3), -math.inf  # A [0, 2)
    chain = LinearChain(potentials, torch.tensor([2]))
    assert best_expected_f1(chain, scheme) == [[]]


def test_mbr_pipeline_keeps_evidence_and_gives_posteriors(tools):
    nlp = tools.random_nlp()
    mbr = tools.make_nlp(decode="mbr", confidence=True).from_bytes(nlp.to_bytes())
    for text in ["", " ", *tools.texts]:
        doc = mbr.make_doc(text)
        if len(doc) > 3:
            doc.ents = [Span(doc, 1, 3, "ORG")]
        given_spans = tools.entities(doc)
        doc = mbr.get_pipe("ner")(doc)
        found = tools.entities(doc)
        assert set(given_spans) <= set(found)
        assert [(s.start, s.end, s.label_) for s in doc.spans["ner"]] == found
        posteriors = mbr.get_pipe("ner").posterior(doc.ents)
        assert doc.spans["ner"].attrs["scores"] == pytest.approx(posteriors, abs=1e-6)


def test_mbr_of_a_sure_model_is_what_it_learnt(tools, trained_bytes):
    nlp = tools.make_nlp(decode="mbr").from_bytes(trained_bytes)
    for line, text in zip(tools.marked, tools.texts):
        assert tools.entities(nlp(text)) == tools.read_marked(line)[1]


# Threshold


@pytest.mark.parametrize("threshold", [0.0, 0.02, 0.2, 0.9])
def test_threshold_writes_every_span_that_passes_and_no_entities(tools, threshold):
    nlp = tools.make_nlp(decode="threshold", threshold=threshold)
    tools.train(nlp, 4, Adam(0.05))
    ner = nlp.get_pipe("ner")
    doc = nlp("Ada met Evans in Bath")
    spans = [Span(doc, s, e, x) for s in range(5) for e in range(s + 1, 6) for x in ner.labels]
    expected = {span: p for span, p in zip(spans, ner.posterior(spans)) if p >= threshold}
    group = doc.spans["ner"]
    assert set(group) == set(expected)
    assert group.attrs["scores"] == pytest.approx([expected[s] for s in group], abs=1e-6)
    assert not doc.ents and not doc.has_annotation("ENT_IOB")
    if threshold == 0.0:
        assert len(group) == 45  # overlapping ones too


def test_threshold_is_found_by_spacy(tools, trained_bytes, tmp_path, capsys):
    """The real command: recall at a low threshold, precision at a high one."""
    nlp = tools.make_nlp(decode="threshold").from_bytes(trained_bytes)
    nlp.get_pipe("ner").temperature = 3.0  # so that thresholds differ
    nlp.to_disk(tmp_path / "model")
    gold = [example.reference for example in tools.make_examples(nlp)]
    DocBin(docs=gold).to_disk(tmp_path / "dev.spacy")
    best, score, scores = find_threshold(
        str(tmp_path / "model"),
        tmp_path / "dev.spacy",
        "ner",
        "threshold",
        "spans_ner_f",
        n_trials=5,
    )
    assert list(scores) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert 0 < best < 1 and score == max(scores.values()) > 0.8
    assert scores[0.0] < 0.2 and scores[1.0] < score
    nlp = spacy.load(tmp_path / "model", config={"components": {"ner": {"threshold": 0.0}}})
    figures = nlp.evaluate([Example(Doc(nlp.vocab, words=[t.text for t in g]), g) for g in gold])
    assert figures["spans_ner_r"] == 1.0 and figures["spans_ner_p"] < 0.1


def test_threshold_of_the_chunker_leaves_its_chunks_alone(tools):
    nlp = spacy.blank("en")
    config = {"model": tools.small_model(), "decode": "threshold", "threshold": 0.001}
    chunker = nlp.add_pipe("crf_chunker", name="many", config=config)
    examples = tools.make_examples(nlp)
    for example in examples:
        example.reference.spans["chunks"] = list(example.reference.ents)
    nlp.initialize(lambda: examples)
    doc = nlp(tools.texts[0])
    assert len(doc.spans["many"]) > len(doc) and "chunks" not in doc.spans
    for example in examples:
        example.predicted = nlp(example.predicted.text)
    figures = chunker.score(examples)
    assert figures["spans_many_r"] > figures["spans_many_p"] > 0 and "chunks_f" in figures


WAYS = [{}, {"confidence": True}, {"decode": "mbr"}, {"decode": "threshold"}]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_impossible_sentence_is_named_and_the_other_docs_go_on(tools, way):
    """A model may exclude everything."""
    nlp = tools.make_nlp(**way)
    tools.train(nlp, steps=0)
    ner = nlp.get_pipe("ner")
    predict = ner._potentials

    def excluding(docs):
        return [
            numpy.full_like(array, -numpy.inf) if doc.text.startswith("Bad") else array
            for doc, array in zip(docs, predict(docs))
        ]

    ner._potentials = excluding
    bad = nlp.make_doc("Bad luck")
    asked = [ner, ner.marginals, ner.entropy, lambda doc: ner.nbest(doc, 2)]
    asked.append(lambda doc: ner.posterior([Span(doc, 0, 1, "PER")]))
    for ask in asked:
        with pytest.raises(InputError, match="no legal analysis of the sentence 'Bad luck'"):
            ask(bad)
    failed = []
    nlp.set_error_handler(lambda name, proc, docs, error: failed.extend(docs))
    done = list(nlp.pipe(["Ada left", "Bad luck", "Evans"]))
    assert [doc.text for doc in done] == ["Ada left", "Evans"]
    assert [doc.text for doc in failed] == ["Bad luck"]
