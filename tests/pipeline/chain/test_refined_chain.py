"""Spans with weights, and those that are wrong: summed exactly, and unlearnt."""

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.refined_chain import with_weights, without_spans
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain
from tests.helpers.analyses import agrees, analyses, enumerate_doc, legal_chain, tag_path
from tests.helpers.pipelines import (
    TEXTS,
    entities,
    make_examples,
    make_nlp,
    small_model,
    summed_loss,
    train,
)

WORDS = ["Ada", "met", "Evans", "in", "Bath"]


LABELS = ["LOC", "ORG", "PER"]


HEADS = ["label_pair", "softmax"]


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    seed=st.integers(0, 9999),
    data=st.data(),
)
def test_weights_of_spans_are_in_the_partition_and_in_its_gradient(kind, lengths, seed, data):
    labels = ["A", "B"]
    scheme = SpanScheme(labels, kind)
    k = len(scheme.tags)
    generator = torch.Generator().manual_seed(seed)
    potentials = torch.randn(
        (len(lengths), max(lengths), k, k), generator=generator, dtype=torch.float64
    ).requires_grad_()
    chain = legal_chain(LinearChain(potentials, torch.tensor(lengths)), scheme)
    weights = []
    for n in lengths:
        spans = [(s, e, x) for s in range(n) for e in range(s + 1, n + 1) for x in labels]
        values = st.sampled_from([-float("inf"), -0.7, 2.0])
        weights.append(data.draw(st.dictionaries(st.sampled_from(spans), values, max_size=5)))
    left = with_weights(chain, scheme, weights).log_partition
    totals = []
    for row, n in enumerate(lengths):
        scores = []
        for analysis in analyses(n, labels):
            weight = sum(weights[row].get(span, 0.0) for span in analysis)
            if weight > -float("inf"):
                steps = tag_path(analysis, n, scheme.tags)
                pairs = zip([0, *steps[:-1]], steps)
                score = sum(potentials[row, t, a, b] for t, (a, b) in enumerate(pairs))
                scores.append(score + weight)
        totals.append(torch.logsumexp(torch.stack(scores), 0))
    expected = torch.stack(totals)
    torch.testing.assert_close(left, expected)
    (gradient,) = torch.autograd.grad(left.sum(), potentials, retain_graph=True)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected.sum(), potentials)[0])


def test_wrong_span_that_is_almost_certain_keeps_its_digits():
    scheme = SpanScheme(["A"], "BIOES")
    potentials = torch.zeros(1, 1, 5, 5, dtype=torch.float64)
    potentials[0, 0, 0, scheme.tag("S", "A")] = 60.0
    chain = legal_chain(LinearChain(potentials, torch.tensor([1])), scheme)
    left = without_spans(chain, scheme, [[(0, 1, "A")]])
    assert float(left.log_partition - chain.log_partition) == pytest.approx(-60.0)


@pytest.mark.parametrize("span", [(0, 3, "A"), (1, 1, "A"), (-1, 1, "A")])
def test_wrong_span_outside_of_its_sentence_is_an_error(span):
    scheme = SpanScheme(["A"], "BIO")
    chain = LinearChain(torch.zeros(1, 2, 3, 3), torch.tensor([2]))
    with pytest.raises(ValueError, match="is not a span of a sentence of 2 tokens"):
        without_spans(chain, scheme, [[span]])


@pytest.mark.parametrize("head", HEADS)
def test_loss_with_wrong_spans_is_that_of_enumeration(head):
    nlp = make_nlp(small_model(head), incorrect_spans_key="wrong")
    train(nlp, steps=0)
    doc, other = Doc(nlp.vocab, words=WORDS[:4]), Doc(nlp.vocab, words=["Acme"])
    gold = Doc(nlp.vocab, words=WORDS[:4])
    gold.set_ents([], outside=[gold[1:2]], default="missing")
    wrong = [(0, 1, "PER"), (2, 4, "ORG"), (2, 4, "PER"), (1, 3, "LOC")]
    gold.spans["wrong"] = [Span(gold, *span) for span in wrong]
    loss, _ = summed_loss(nlp, [Example(other, Doc(nlp.vocab, words=["Acme"])), Example(doc, gold)])
    if head == "label_pair":  # the other head sums over illegal sequences, too
        truth = enumerate_doc(nlp.get_pipe("ner"), doc)
        keep = agrees([], [1])
        known = truth.share(lambda analysis: keep(analysis) and not set(analysis) & set(wrong))
        assert loss == pytest.approx(-numpy.log(known), abs=1e-4)
    assert loss > 0


def test_wrong_spans_are_unlearnt():
    """All that is known is that some spans are wrong."""
    nlp = make_nlp(incorrect_spans_key="wrong")
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(0.03))
    for _ in range(25):
        nlp.update(examples, sgd=optimizer)
    text = TEXTS[0]
    bad = nlp(text).ents[0]
    reference = Doc(nlp.vocab, words=[token.text for token in bad.doc])
    reference.spans["wrong"] = [Span(reference, bad.start, bad.end, bad.label_)]
    ner = nlp.get_pipe("ner")
    before = ner.posterior([bad])[0]
    for _ in range(25):
        nlp.update([Example(nlp.make_doc(text), reference)], sgd=optimizer)
    assert before > 0.5 > 0.1 > ner.posterior([bad])[0]
    assert entities(nlp(text))[:1] != [(bad.start, bad.end, bad.label_)]


def test_wrong_span_that_is_a_gold_entity_is_an_error():
    nlp = make_nlp(incorrect_spans_key="wrong")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    reference = examples[0].reference
    reference.spans["wrong"] = [reference.ents[0]]
    with pytest.raises(
        InputError, match=r"'Ada Lovelace' \(PER\) is an entity.*spans\[\"wrong\"\]"
    ):
        nlp.update(examples, sgd=Adam(0.01))
    reference.spans["wrong"] = [Span(reference, 0, 1, "ART")]
    with pytest.raises(InputError, match="label 'ART'"):
        nlp.update(examples, sgd=Adam(0.01))


def test_labels_of_wrong_spans_are_found_and_spans_across_sentences_are_no_news():
    nlp = make_nlp(incorrect_spans_key="wrong")
    examples = make_examples(nlp)
    examples[0].reference.spans["wrong"] = [Span(examples[0].reference, 0, 1, "ART")]
    nlp.initialize(lambda: examples)
    assert nlp.get_pipe("ner").labels == ("ART", *LABELS)
    starts = [1, 0, 1, 0, 0]
    doc = Doc(nlp.vocab, words=WORDS, sent_starts=starts)
    gold = Doc(nlp.vocab, words=WORDS, sent_starts=starts)
    without, _ = summed_loss(nlp, [Example(doc, gold)])
    gold.spans["wrong"] = [Span(gold, 1, 4, "PER")]
    assert summed_loss(nlp, [Example(doc, gold)])[0] == pytest.approx(without, abs=1e-5)
    gold.spans["wrong"] = [Span(gold, 1, 2, "PER")]
    missing = gold.copy()
    missing.set_ents([], missing=[Span(missing, 1, 3)], default="outside")
    wanted, _ = summed_loss(nlp, [Example(doc, missing)])
    gold.ents = [Span(gold, 1, 3, "PER")]  # summed out, so that a wrong piece is no contradiction
    with pytest.warns(UserWarning, match="goes over the bounds"):
        found, _ = summed_loss(nlp, [Example(doc, gold)])
    assert found == pytest.approx(wanted, abs=1e-5) and found < float("inf")
