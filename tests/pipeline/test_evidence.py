"""What stands on a doc is evidence, and what is known to be missing or wrong is summed out."""

import numpy
import pytest
import spacy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.incorrect_spans import without_spans
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain

WORDS = ["Ada", "met", "Evans", "in", "Bath"]
LABELS = ["LOC", "ORG", "PER"]
HEADS = ["label_pair", "softmax"]


@pytest.fixture(scope="module")
def pipelines(tools):
    """Random pipelines: of both schemes, of potentials that are far from each other."""
    made = {}
    for scheme in ("BIOES", "BIO"):
        nlp = tools.make_nlp(scheme=scheme)
        tools.train(nlp, steps=0)
        generator = torch.Generator().manual_seed(2)
        for node in nlp.get_pipe("ner").model.walk():
            for shim in node.shims:
                for parameter in shim.module.parameters():
                    parameter.data.normal_(generator=generator)
        made[scheme] = nlp
    return made


def agrees(given_spans, blocked):
    def keep(analysis):
        inside = {i for start, end, _ in analysis for i in range(start, end)}
        return set(given_spans) <= set(analysis) and not inside & set(blocked)

    return keep


@st.composite
def evidence(draw):
    """Spans that do not overlap and blocked tokens, of a doc of up to five."""
    n = draw(st.integers(1, 5))
    spans, blocked, i = [], [], 0
    while i < n:
        kind = draw(st.sampled_from(["free", "free", "span", "blocked"]))
        end = i + 1
        if kind == "span":
            end = draw(st.integers(i + 1, n))
            spans.append((i, end, draw(st.sampled_from(LABELS))))
        elif kind == "blocked":
            blocked.append(i)
        i = end
    return n, spans, blocked


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
@settings(max_examples=25, deadline=None)
@given(case=evidence())
def test_result_is_the_best_analysis_that_agrees_with_the_evidence(
    tools, enumeration, pipelines, scheme, case
):
    n, spans, blocked = case
    nlp = pipelines[scheme]
    ner = nlp.get_pipe("ner")
    bare = Doc(nlp.vocab, words=WORDS[:n])
    truth = enumeration.of_doc(ner, bare).where(agrees(spans, blocked))
    doc = Doc(nlp.vocab, words=WORDS[:n])
    doc.set_ents(
        [Span(doc, *span) for span in spans],
        blocked=[doc[i : i + 1] for i in blocked],
        default="missing",
    )
    assert ner.entropy(doc) == pytest.approx(truth.entropy, abs=1e-6)
    asked = [Span(doc, s, e, x) for s in range(n) for e in range(s + 1, n + 1) for x in LABELS]
    expected = [truth.of((span.start, span.end, span.label_)) for span in asked]
    numpy.testing.assert_allclose(ner.posterior(asked), expected, atol=1e-8)
    ner(doc)
    assert tuple(tools.entities(doc)) == truth.best
    assert [t.i for t in doc if t.ent_iob == 3 and not t.ent_type] == blocked
    ner(doc)  # its own prediction is no evidence: again, the same
    assert tuple(tools.entities(doc)) == truth.best


def test_overwrite_ignores_what_stands_on_the_doc(tools, trained_bytes):
    nlp = tools.make_nlp(overwrite=True).from_bytes(trained_bytes)
    expected = tools.entities(nlp(tools.texts[0]))
    doc = nlp.make_doc(tools.texts[0])
    doc.set_ents([Span(doc, 0, 3, "ORG")], blocked=[doc[4:5]])
    assert tools.entities(nlp.get_pipe("ner")(doc)) == expected != []
    assert all(t.ent_type or t.ent_iob == 2 for t in doc)


def test_neighbours_move_with_the_evidence(tools, trained):
    """A ruler's entity before the component changes what is beside it."""
    ruler = trained.add_pipe("entity_ruler", before="ner")
    ruler.add_patterns([{"label": "ORG", "pattern": "Lovelace met"}])
    assert (1, 3, "ORG") in tools.entities(trained(tools.texts[0]))
    assert (0, 2, "PER") not in tools.entities(trained(tools.texts[0]))


def test_evidence_has_the_confidence_one(tools, trained_bytes):
    nlp = tools.make_nlp(confidence=True).from_bytes(trained_bytes)
    doc = nlp.make_doc(tools.texts[0])
    doc.ents = [Span(doc, 2, 3, "ORG"), Span(doc, 3, 5, "UNKNOWN")]
    doc = nlp.get_pipe("ner")(doc)
    found = {ent.label_: ent._.confidence for ent in doc.ents}
    assert found["ORG"] == found["UNKNOWN"] == 1.0 and len(doc.spans["ner"]) == len(doc.ents)


# Chunks


@pytest.fixture
def chunker(tools):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("crf_chunker", config={"model": tools.small_model()})
    examples = tools.make_examples(nlp)
    for example in examples:
        example.reference.spans["chunks"] = list(example.reference.ents)
    nlp.initialize(lambda: examples)
    for _ in range(3):
        nlp.update(examples, sgd=Adam(0.05))
    return nlp, pipe


def test_chunks_that_stand_on_a_doc_are_evidence(enumeration, chunker):
    nlp, pipe = chunker
    doc = Doc(nlp.vocab, words=WORDS)
    truth = enumeration.of_doc(pipe, doc).where(agrees([(1, 3, "ORG")], []))
    doc.spans["chunks"] = [Span(doc, 1, 3, "ORG")]
    pipe(doc)
    chunks = tuple((s.start, s.end, s.label_) for s in doc.spans["chunks"])
    assert chunks == truth.best and (1, 3, "ORG") in chunks
    pipe.overwrite = True
    pipe(doc)
    assert (1, 3, "ORG") not in {(s.start, s.end, s.label_) for s in doc.spans["chunks"]}


def test_overlapping_chunks_on_a_doc_are_one_error_and_the_others_go_on(chunker):
    nlp, pipe = chunker
    docs = [Doc(nlp.vocab, words=WORDS, sent_starts=[1, 0, 1, 0, 0]) for _ in range(3)]
    docs[1].spans["chunks"] = [Span(docs[1], 3, 5, "ORG"), Span(docs[1], 2, 4, "PER")]
    message = r"'Evans in' \(PER\) and 'in Bath' \(ORG\) overlap in the sentence 'Evans in Bath'"
    with pytest.raises(InputError, match=message):
        pipe(docs[1])
    failed = []
    pipe.set_error_handler(lambda name, proc, docs, error: failed.extend(docs))
    assert list(pipe.pipe(docs)) == [docs[0], docs[2]] and failed == [docs[1]]


def test_tags_that_stand_on_a_doc_are_evidence_and_own_ones_not(tools):
    nlp = spacy.blank("en")
    config = {"model": tools.small_model(), "overwrite": False}
    tagger = nlp.add_pipe("crf_tagger", config=config)
    gold = {"tags": ["NNP", "VBD", "NNP", "IN", "NNP"]}
    doc = Doc(nlp.vocab, words=WORDS)
    nlp.initialize(lambda: [Example.from_dict(doc, gold)])
    done = tagger(Doc(nlp.vocab, words=WORDS))
    assert tagger.entropy(done) == tagger.entropy(Doc(nlp.vocab, words=WORDS)) > 0
    fixed = Doc(nlp.vocab, words=WORDS, tags=["", "NNP", "", "", ""])
    assert tagger.marginals(fixed)[1, tagger.tags.index("NNP")] == pytest.approx(1.0)
    assert tagger(fixed)[1].tag_ == "NNP" and all(token.tag_ for token in fixed)


# Partial annotation


def loss_of(nlp, examples):
    ner = nlp.get_pipe("ner")
    ner.reduction = "sum"
    scores = ner.model.predict([eg.predicted for eg in examples])
    return ner.get_loss(examples, scores)


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
@settings(max_examples=15, deadline=None)
@given(case=evidence(), data=st.data())
def test_loss_is_the_marginal_likelihood_of_what_is_known(
    enumeration, pipelines, scheme, case, data
):
    n, spans, outside = case
    nlp = pipelines[scheme]
    doc = Doc(nlp.vocab, words=WORDS[:n])
    gold = Doc(nlp.vocab, words=WORDS[:n])
    gold.set_ents(
        [Span(gold, *span) for span in spans],
        outside=[gold[i : i + 1] for i in outside],
        default="missing",
    )
    truth = enumeration.of_doc(nlp.get_pipe("ner"), doc)
    keep = agrees(spans, outside)
    known = sum(p for v, p in zip(truth.values, truth.probabilities) if keep(v))
    loss, _ = loss_of(nlp, [Example(doc, gold)])
    assert loss == pytest.approx(-numpy.log(known), abs=1e-3)


def test_hyphens_of_an_example_are_missing_annotation(enumeration, pipelines):
    nlp = pipelines["BIOES"]
    doc = Doc(nlp.vocab, words=WORDS[:4])
    truth = enumeration.of_doc(nlp.get_pipe("ner"), doc)
    example = Example.from_dict(doc, {"entities": ["-", "O", "U-PER", "-"]})
    keep = agrees([(2, 3, "PER")], [1])
    known = sum(p for v, p in zip(truth.values, truth.probabilities) if keep(v))
    assert loss_of(nlp, [example])[0] == pytest.approx(-numpy.log(known), abs=1e-3)
    nothing = Example.from_dict(doc, {"entities": ["-"] * 4})
    loss, (gradient,) = loss_of(nlp, [nothing])
    assert loss == pytest.approx(0.0, abs=1e-4) and abs(gradient).max() < 1e-5


def test_misaligned_entities_are_missing_annotation(enumeration, pipelines):
    """The reference splits a token in the middle of its entity: nothing is known of it."""
    nlp = pipelines["BIOES"]
    doc = Doc(nlp.vocab, words=["Ada", "metEvans", "in"], spaces=[True, True, False])
    gold = Doc(nlp.vocab, words=["Ada", "met", "Evans", "in"], spaces=[True, False, True, False])
    gold.ents = [Span(gold, 0, 1, "PER"), Span(gold, 2, 3, "PER")]
    truth = enumeration.of_doc(nlp.get_pipe("ner"), doc)
    keep = agrees([(0, 1, "PER")], [2])
    known = sum(p for v, p in zip(truth.values, truth.probabilities) if keep(v))
    assert loss_of(nlp, [Example(doc, gold)])[0] == pytest.approx(-numpy.log(known), abs=1e-3)


# Spans that are known to be wrong


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    seed=st.integers(0, 9999),
    data=st.data(),
)
def test_wrong_spans_are_out_of_the_partition_and_of_its_gradient(
    enumeration, kind, lengths, seed, data
):
    labels = ["A", "B"]
    scheme = SpanScheme(labels, kind)
    k = len(scheme.tags)
    generator = torch.Generator().manual_seed(seed)
    potentials = torch.randn(
        (len(lengths), max(lengths), k, k), generator=generator, dtype=torch.float64
    ).requires_grad_()
    moves, start, end = map(torch.from_numpy, scheme.legal())
    chain = LinearChain(potentials, torch.tensor(lengths))
    chain = chain.constrain(moves=moves, start=start, end=end)
    wrong = []
    for n in lengths:
        spans = [(s, e, x) for s in range(n) for e in range(s + 1, n + 1) for x in labels]
        wrong.append(data.draw(st.lists(st.sampled_from(spans), max_size=5)))
    left = without_spans(chain, scheme, wrong).log_partition
    totals = []
    for row, n in enumerate(lengths):
        scores = []
        for analysis in enumeration.analyses(n, labels):
            if not set(analysis) & set(wrong[row]):
                steps = enumeration.path(analysis, n, scheme.tags)
                pairs = zip([0, *steps[:-1]], steps)
                scores.append(sum(potentials[row, t, a, b] for t, (a, b) in enumerate(pairs)))
        totals.append(torch.logsumexp(torch.stack(scores), 0))
    expected = torch.stack(totals)
    torch.testing.assert_close(left, expected)
    (gradient,) = torch.autograd.grad(left.sum(), potentials, retain_graph=True)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected.sum(), potentials)[0])


def test_wrong_span_that_is_almost_certain_keeps_its_digits():
    scheme = SpanScheme(["A"], "BIOES")
    potentials = torch.zeros(1, 1, 5, 5, dtype=torch.float64)
    potentials[0, 0, 0, scheme.tag("S", "A")] = 60.0
    moves, start, end = map(torch.from_numpy, scheme.legal())
    chain = LinearChain(potentials, torch.tensor([1])).constrain(moves=moves, start=start, end=end)
    left = without_spans(chain, scheme, [[(0, 1, "A")]])
    assert float(left.log_partition - chain.log_partition) == pytest.approx(-60.0)


@pytest.mark.parametrize("span", [(0, 3, "A"), (1, 1, "A"), (-1, 1, "A")])
def test_wrong_span_outside_of_its_sentence_is_an_error(span):
    scheme = SpanScheme(["A"], "BIO")
    chain = LinearChain(torch.zeros(1, 2, 3, 3), torch.tensor([2]))
    with pytest.raises(ValueError, match="no span of a sentence of 2"):
        without_spans(chain, scheme, [[span]])


@pytest.mark.parametrize("head", HEADS)
def test_loss_with_wrong_spans_is_that_of_enumeration(tools, enumeration, head):
    nlp = tools.make_nlp(tools.small_model(head), incorrect_spans_key="wrong")
    tools.train(nlp, steps=0)
    doc, other = Doc(nlp.vocab, words=WORDS[:4]), Doc(nlp.vocab, words=["Acme"])
    gold = Doc(nlp.vocab, words=WORDS[:4])
    gold.set_ents([], outside=[gold[1:2]], default="missing")
    wrong = [(0, 1, "PER"), (2, 4, "ORG"), (2, 4, "PER"), (1, 3, "LOC")]
    gold.spans["wrong"] = [Span(gold, *span) for span in wrong]
    loss, _ = loss_of(nlp, [Example(other, Doc(nlp.vocab, words=["Acme"])), Example(doc, gold)])
    if head == "label_pair":  # the other head sums over illegal sequences, too
        truth = enumeration.of_doc(nlp.get_pipe("ner"), doc)
        known = sum(
            p
            for v, p in zip(truth.values, truth.probabilities)
            if agrees([], [1])(v) and not set(v) & set(wrong)
        )
        assert loss == pytest.approx(-numpy.log(known), abs=1e-4)
    assert loss > 0


def test_wrong_spans_are_unlearnt(tools):
    """All that is known is that some spans are wrong."""
    nlp = tools.make_nlp(incorrect_spans_key="wrong")
    examples = tools.make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(0.03))
    for _ in range(25):
        nlp.update(examples, sgd=optimizer)
    text = tools.texts[0]
    bad = nlp(text).ents[0]
    reference = Doc(nlp.vocab, words=[token.text for token in bad.doc])
    reference.spans["wrong"] = [Span(reference, bad.start, bad.end, bad.label_)]
    ner = nlp.get_pipe("ner")
    before = ner.posterior([bad])[0]
    for _ in range(25):
        nlp.update([Example(nlp.make_doc(text), reference)], sgd=optimizer)
    assert before > 0.5 > 0.1 > ner.posterior([bad])[0]
    assert tools.entities(nlp(text))[:1] != [(bad.start, bad.end, bad.label_)]


def test_wrong_span_that_is_a_gold_entity_is_an_error(tools):
    nlp = tools.make_nlp(incorrect_spans_key="wrong")
    examples = tools.make_examples(nlp)
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


def test_labels_of_wrong_spans_are_found_and_spans_across_sentences_are_no_news(tools):
    nlp = tools.make_nlp(incorrect_spans_key="wrong")
    examples = tools.make_examples(nlp)
    examples[0].reference.spans["wrong"] = [Span(examples[0].reference, 0, 1, "ART")]
    nlp.initialize(lambda: examples)
    assert nlp.get_pipe("ner").labels == ("ART", *LABELS)
    starts = [1, 0, 1, 0, 0]
    doc = Doc(nlp.vocab, words=WORDS, sent_starts=starts)
    gold = Doc(nlp.vocab, words=WORDS, sent_starts=starts)
    without, _ = loss_of(nlp, [Example(doc, gold)])
    gold.spans["wrong"] = [Span(gold, 1, 4, "PER")]
    assert loss_of(nlp, [Example(doc, gold)])[0] == pytest.approx(without, abs=1e-5)
    gold.ents = [Span(gold, 1, 3, "PER")]  # cut at the bounds, where it is a wrong one
    gold.spans["wrong"] = [Span(gold, 1, 2, "PER")]
    with pytest.raises(InputError, match=r"every analysis.*bounds of a sentence"):
        loss_of(nlp, [Example(doc, gold)])
