"""Posteriors of spans, confidences on docs, and what is asked of a component."""

import json

import numpy
import pytest
import spacy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span, Token
from thinc.api import Adam

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.span_posteriors import SpanPosteriors
from spacy_psa.pipeline.chain.span_tags import SpanScheme
from spacy_psa.structs.chain import LinearChain

LABELS = ["A", "B"]


def random_chain(kind, lengths, seed, scale=2.0, labels=LABELS):
    """A chain over legal sequences with large random potentials."""
    scheme = SpanScheme(labels, kind)
    k = len(scheme.tags)
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths), k, k)
    potentials = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    moves, start, end = map(torch.from_numpy, scheme.legal())
    chain = LinearChain(potentials, torch.tensor(lengths))
    return scheme, chain.constrain(moves=moves, start=start, end=end)


def all_spans(length):
    return [
        (start, end, label)
        for start in range(length)
        for end in range(start + 1, length + 1)
        for label in range(len(LABELS))
    ]


# Posteriors


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@pytest.mark.parametrize("seed", [0, 1])
def test_posterior_of_every_span_is_that_of_enumeration(enumeration, kind, seed):
    lengths = [5, 1, 4]
    scheme, chain = random_chain(kind, lengths, seed)
    posteriors = SpanPosteriors(chain, scheme)
    for row, length in enumerate(lengths):
        truth = enumeration.all(chain.potentials[row, :length], LABELS, scheme.tags)
        for start, end, label in all_spans(length):
            expected = truth.of((start, end, LABELS[label]))
            assert posteriors.of(row, start, end, label) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), length=st.integers(1, 9), scale=st.sampled_from([0.1, 3, 30]))
def test_posterior_is_that_of_the_constrained_partition(kind, seed, length, scale):
    scheme, chain = random_chain(kind, [length], seed, scale)
    posteriors = SpanPosteriors(chain, scheme)
    start = seed % length
    end = start + 1 + (seed // 7) % (length - start)
    label = seed % 2
    allowed = torch.ones(1, length, len(scheme.tags), dtype=torch.bool)
    tags = scheme.encode(length, [(start, end, LABELS[label])])[start:end]
    allowed[0, start:end] = False
    allowed[0, torch.arange(start, end), torch.from_numpy(tags)] = True
    if kind == "BIO":
        allowed[0, end : end + 1, scheme.tag("I", LABELS[label])] = False
    log_odds = chain.constrain(allowed).log_partition - chain.log_partition
    expected = float(log_odds.exp())
    assert posteriors.of(0, start, end, label) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", ["BIOES", "BIO"])
@pytest.mark.parametrize("floor", [0.0, 0.01, 0.3, 1.0])
def test_spans_above_a_floor_are_all_that_there_are(kind, floor):
    lengths = [6, 2, 1]
    scheme, chain = random_chain(kind, lengths, 3)
    posteriors = SpanPosteriors(chain, scheme)
    expected = {
        (row, *span): float(posteriors.of(row, *span))
        for row, length in enumerate(lengths)
        for span in all_spans(length)
        if posteriors.of(row, *span) >= max(floor, 1e-300)
    }
    spans, values = posteriors.above(floor)
    assert [tuple(span) for span in spans.tolist()] == sorted(expected)
    numpy.testing.assert_allclose(values, [expected[key] for key in sorted(expected)], rtol=1e-12)


def test_a_posterior_is_no_product_of_marginals():
    """Two analyses, [0, 2) or nothing, half of the time each: the tags' marginals are 1/2."""
    scheme = SpanScheme(["A"], "BIOES")
    potentials = torch.full((1, 2, 5, 5), -torch.inf, dtype=torch.float64)
    potentials[0, 0, 0, [0, scheme.tag("B", "A")]] = 0.0
    potentials[0, 1, 0, 0] = potentials[0, 1, scheme.tag("B", "A"), scheme.tag("E", "A")] = 0.0
    posteriors = SpanPosteriors(LinearChain(potentials, torch.tensor([2])), scheme)
    assert posteriors.of(0, 0, 2, 0) == 0.5


# On docs


@pytest.fixture(scope="module")
def unsure_bytes(tools):
    """The weights of a pipeline that is right, but not sure."""
    nlp = tools.make_nlp()
    tools.train(nlp, 12, Adam(0.02))
    return nlp.to_bytes()


@pytest.fixture
def unsure(tools, unsure_bytes):
    return lambda **settings: tools.make_nlp(**settings).from_bytes(unsure_bytes)


def scored(doc, key="ner"):
    group = doc.spans[key]
    return {(s.start, s.end, s.label_): p for s, p in zip(group, group.attrs["scores"])}


def test_confidence_is_off_unless_asked_for(tools, unsure):
    doc = unsure()(tools.texts[0])
    assert not doc.spans


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
@pytest.mark.parametrize("head", ["label_pair", "softmax"])
def test_predicted_spans_have_the_probability_of_enumeration(tools, enumeration, scheme, head):
    nlp = tools.make_nlp(tools.small_model(head), scheme=scheme, confidence=True)
    tools.train(nlp, 20, Adam(0.05))
    ner = nlp.get_pipe("ner")
    seen = 0
    for text in ["Ada met Evans", "Acme", "in Bath Leeds ."]:
        doc = nlp(text)
        truth = enumeration.of_doc(ner, nlp.make_doc(text))
        found = scored(doc)
        assert list(found) == tools.entities(doc) == list(truth.best)
        for span, probability in found.items():
            assert probability == pytest.approx(truth.of(span), abs=1e-6)
        assert doc._.ner_uncertainty == pytest.approx(truth.entropy, abs=1e-5)
        assert ner.entropy(doc) == pytest.approx(truth.entropy, abs=1e-9)
        seen += len(found)
    assert seen


def test_confidence_of_a_span_is_looked_up_with_its_label(tools, unsure):
    doc = unsure(confidence=True)(tools.texts[0])
    (start, end, label), probability = next(iter(scored(doc).items()))
    assert doc.ents[0]._.confidence == probability and 0 < probability < 1
    assert Span(doc, start, end, label)._.confidence == probability
    assert Span(doc, start, end, "NP")._.confidence is None
    doc.spans["chunks"] = [Span(doc, start, end, "NP")]
    doc.spans["chunks"].attrs["scores"] = [0.25]
    assert Span(doc, start, end, "NP")._.confidence == 0.25
    assert Span(doc, start, end, label)._.confidence == probability


def test_confidence_survives_docbin_json_bytes_and_disk(tools, unsure, tmp_path):
    nlp = unsure(confidence=True)
    doc = nlp(tools.texts[0])
    expected, uncertainty = scored(doc), doc._.ner_uncertainty
    assert expected and uncertainty > 0
    bare = DocBin().from_bytes(DocBin(docs=[doc]).to_bytes())
    assert scored(next(bare.get_docs(nlp.vocab))) == expected
    doc.to_disk(tmp_path / "doc")
    names = ["confidence", "ner_uncertainty"]
    kept = DocBin(docs=[doc], store_user_data=True).to_bytes()
    copies = [
        next(DocBin().from_bytes(kept).get_docs(nlp.vocab)),
        Doc(nlp.vocab).from_bytes(doc.to_bytes()),
        Doc(nlp.vocab).from_disk(tmp_path / "doc"),
        Doc(nlp.vocab).from_json(json.loads(json.dumps(doc.to_json(underscore=names)))),
    ]
    for copy in copies:
        assert scored(copy) == expected
        assert [ent._.confidence for ent in copy.ents] == list(expected.values())
        assert copy._.ner_uncertainty == uncertainty


def test_scores_of_another_doc_are_refused(tools, unsure):
    doc = unsure(confidence=True)("Nobody came .")
    with pytest.raises(ValueError, match="the 7 spans"):
        doc._.confidence = {"ner": [0.5] * 7}


def test_attribute_of_somebody_else_is_left_alone(tools, unsure):
    before = Span.get_extension("confidence") if Span.has_extension("confidence") else None
    Span.set_extension("confidence", default="mine", force=True)
    try:
        with pytest.warns(UserWarning, match=r"Span\._\.confidence"):
            nlp = unsure(confidence=True)
        assert nlp(tools.texts[0])[0:1]._.confidence == "mine"
    finally:
        Span.remove_extension("confidence")
        if before:
            _, _, getter, _ = before
            Span.set_extension("confidence", getter=getter)


def test_settings_of_confidence_are_saved(unsure, tmp_path):
    unsure(confidence=True, decode="mbr", threshold=0.25, overwrite=True).to_disk(tmp_path / "m")
    ner = spacy.load(tmp_path / "m").get_pipe("ner")
    assert (ner.confidence, ner.decode, ner.threshold, ner.overwrite) == (True, "mbr", 0.25, True)


def test_docs_without_spans_or_tokens_have_an_empty_group(unsure):
    nlp = unsure(confidence=True)
    for doc in nlp.pipe(["", " ", "Nobody came ."]):
        assert len(doc.spans["ner"].attrs["scores"]) == len(doc.spans["ner"]) == len(doc.ents)
        assert doc._.ner_uncertainty >= 0.0
    assert nlp("")._.ner_uncertainty == 0.0


def test_confidence_is_that_of_each_sentence(tools, unsure):
    """Of a doc of two sentences, and of each of them alone."""
    nlp = unsure(confidence=True)
    words = [tools.texts[0].split(), tools.texts[2].split()]
    starts = [i == 0 for part in words for i in range(len(part))]
    whole = nlp(Doc(nlp.vocab, words=words[0] + words[1], sent_starts=starts))
    parts = [nlp(Doc(nlp.vocab, words=part)) for part in words]
    expected = {**scored(parts[0])}
    for (start, end, label), p in scored(parts[1]).items():
        expected[start + len(words[0]), end + len(words[0]), label] = p
    assert scored(whole) == pytest.approx(expected, abs=1e-6)
    total = sum(part._.ner_uncertainty for part in parts)
    assert whole._.ner_uncertainty == pytest.approx(total, abs=1e-5)
    ner = nlp.get_pipe("ner")
    assert ner.marginals(whole).shape == (len(whole), len(ner.tags))
    assert ner.posterior([Span(whole, len(words[0]) - 1, len(words[0]) + 1, "PER")]) == [0.0]


# Questions


def test_posterior_answers_for_any_span_and_label(tools, enumeration):
    nlp = tools.random_nlp()
    ner = nlp.get_pipe("ner")
    doc = nlp("Ada met Mary Evans")
    truth = enumeration.of_doc(ner, nlp.make_doc(doc.text))
    spans = [Span(doc, s, e, x) for s in range(4) for e in range(s + 1, 5) for x in ner.labels]
    expected = [truth.of((span.start, span.end, span.label_)) for span in spans]
    numpy.testing.assert_allclose(ner.posterior(spans), expected, atol=1e-10)
    assert len(ner.posterior([])) == 0
    assert ner.posterior([Span(doc, 2, 2, "PER")]) == [0.0]


def test_marginals_are_those_of_enumeration(tools, enumeration):
    nlp = tools.random_nlp()
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc("Ada met Evans")
    truth = enumeration.of_doc(ner, doc)
    expected = numpy.zeros((3, len(ner.tags)))
    for spans, probability in zip(truth.values, truth.probabilities):
        expected[range(3), enumeration.path(spans, 3, ner.tags)] += probability
    numpy.testing.assert_allclose(ner.marginals(doc), expected, atol=1e-10)
    assert ner.marginals(nlp.make_doc("")).shape == (0, len(ner.tags))
    assert ner.entropy(nlp.make_doc("")) == 0.0


def test_own_predictions_are_no_evidence(tools, unsure):
    """What is asked of an annotated doc is what is asked of a bare one."""
    nlp = unsure()
    ner = nlp.get_pipe("ner")
    bare, done = nlp.make_doc(tools.texts[0]), nlp(tools.texts[0])
    numpy.testing.assert_array_equal(ner.marginals(done), ner.marginals(bare))
    assert ner.entropy(done) == ner.entropy(bare) > 0
    spans = [Span(bare, ent.start, ent.end, ent.label_) for ent in done.ents]
    assert ner.posterior(done.ents).tolist() == ner.posterior(spans).tolist()
    (through,) = DocBin(docs=[done], store_user_data=True).get_docs(nlp.vocab)
    assert ner.entropy(through) == ner.entropy(bare)
    done.ents = [*done.ents, Span(done, 1, 2, "ORG")]  # a user's own
    assert ner.posterior([Span(done, 1, 2, "ORG")]) == pytest.approx([1.0])
    assert max(ner.posterior(done.ents[:1])) < 1.0


def test_wrong_questions_are_one_error_each(tools, unsure):
    nlp = unsure()
    ner = nlp.get_pipe("ner")
    doc, other = nlp.make_doc("Ada met Evans"), nlp.make_doc("Ada left")
    with pytest.raises(InputError, match=r"'Evans' has the label 'ART'.*LOC, ORG, PER"):
        ner.posterior([Span(doc, 2, 3, "ART")])
    with pytest.raises(InputError, match="label ''"):
        ner.posterior([doc[2:3]])
    with pytest.raises(InputError, match="'left' is a span of another doc"):
        ner.posterior([Span(doc, 0, 1, "PER"), Span(other, 1, 2, "PER")])
    for n in (0, -1):
        with pytest.raises(InputError, match=f"n is {n}"):
            ner.nbest(doc, n)
    with pytest.raises(InputError, match=r"threshold is 1\.5"):
        type(ner)(ner.vocab, ner.model, "x", scheme="BIO", threshold=1.5)
    with pytest.raises(InputError, match="decode is 'beam'"):
        type(ner)(ner.vocab, ner.model, "x", scheme="BIO", decode="beam")


# Temperature


def test_temperature_flattens_the_distribution_and_keeps_the_best(tools, enumeration):
    nlp = tools.random_nlp()
    ner = nlp.get_pipe("ner")
    text = "Ada met Evans"
    truth = enumeration.of_doc(ner, nlp.make_doc(text))
    best = tools.entities(nlp(text))
    for temperature in (0.5, 1.0, 4):
        ner.temperature = temperature
        weights = truth.probabilities ** (1 / temperature)
        tempered = enumeration.Distribution(truth.values, weights / weights.sum())
        assert ner.entropy(nlp.make_doc(text)) == pytest.approx(tempered.entropy, rel=1e-4)
        assert tools.entities(nlp(text)) == best
    assert ner.temperature == 4.0


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "hot", None, True])
def test_wrong_temperature_is_an_error_and_changes_nothing(tools, value):
    ner = tools.make_nlp().get_pipe("ner")
    ner.temperature = 2.0
    with pytest.raises(InputError, match="temperature is"):
        ner.temperature = value
    assert ner.temperature == 2.0


def test_temperature_is_saved_and_models_without_one_load(tools, unsure, tmp_path):
    nlp = unsure()
    old = nlp.to_bytes()
    assert "temperature" not in nlp.get_pipe("ner").cfg
    nlp.get_pipe("ner").temperature = 1.5
    assert unsure().from_bytes(nlp.to_bytes()).get_pipe("ner").temperature == 1.5
    nlp.to_disk(tmp_path / "model")
    assert spacy.load(tmp_path / "model").get_pipe("ner").temperature == 1.5
    assert nlp.from_bytes(old).get_pipe("ner").temperature == 1.0
    (tmp_path / "model" / "ner" / "cfg").write_text('{"labels": ["A"], "temperature": -1}')
    with pytest.raises(InputError, match=r"'ner' cannot be loaded.*temperature is -1"):
        spacy.load(tmp_path / "model")


def test_temperature_is_not_for_training(tools, unsure):
    nlp = unsure()
    examples = tools.make_examples(nlp)
    scores = nlp.get_pipe("ner").model.predict([eg.predicted for eg in examples])
    cold, _ = nlp.get_pipe("ner").get_loss(examples, scores)
    nlp.get_pipe("ner").temperature = 3.0
    assert nlp.get_pipe("ner").get_loss(examples, scores)[0] == cold


# The other components


def test_tagger_gives_the_probability_of_each_tag(tools, tmp_path):
    nlp = spacy.blank("en")
    config = {"model": tools.small_model(), "confidence": True}
    tagger = nlp.add_pipe("crf_tagger", config=config)
    nlp.initialize(
        lambda: [
            spacy.training.Example.from_dict(
                nlp.make_doc("Ada met Evans"), {"tags": ["NNP", "VBD", "NNP"]}
            )
        ]
    )
    doc = nlp("Ada met her")
    marginals = tagger.marginals(doc)
    chosen = [marginals[i, tagger.tags.index(token.tag_)] for i, token in enumerate(doc)]
    given_by = [token._.tag_confidence for token in doc]
    assert given_by == pytest.approx(chosen, abs=1e-6)
    doc.to_disk(tmp_path / "doc")
    kept = DocBin(docs=[doc], store_user_data=True)
    for copy in (
        next(kept.get_docs(nlp.vocab)),
        Doc(nlp.vocab).from_json(doc.to_json(underscore=["tag_confidence"])),
        Doc(nlp.vocab).from_disk(tmp_path / "doc"),
    ):
        assert [token._.tag_confidence for token in copy] == given_by
    assert Token.has_extension("tag_confidence")
    log_prob, tags = tagger.nbest(doc, 1)[0]
    assert tags == [token.tag_ for token in doc] and log_prob < 0


def test_chunker_gives_confidences_beside_its_chunks(tools):
    nlp = spacy.blank("en")
    config = {"model": tools.small_model(), "confidence": True}
    chunker = nlp.add_pipe("crf_chunker", config=config)
    examples = tools.make_examples(nlp)
    for example in examples:
        example.reference.spans["chunks"] = list(example.reference.ents)
    nlp.initialize(lambda: examples)
    doc = nlp(tools.texts[0])
    chunks = [(s.start, s.end, s.label_) for s in doc.spans["chunks"]]
    assert list(scored(doc, "crf_chunker")) == chunks
    values = list(scored(doc, "crf_chunker").values())
    assert chunker.posterior(doc.spans["chunks"]) == pytest.approx(values, abs=1e-6)
    assert "scores" not in doc.spans["chunks"].attrs
