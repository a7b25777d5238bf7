"""`crf_spans`: learning, prediction, evidence and bad input."""

import itertools
import math
import pickle

import numpy
import pytest
import spacy
import srsly
from spacy.cli.train import train as train_by_config
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import fix_random_seed

from spacy_psa.analysis.calibration import calibrate, calibrate_coverage
from spacy_psa.errors import InputError
from spacy_psa.pipeline.coverage import Coverage
from spacy_psa.pipeline.distillation import Teacher, learn_from
from tests.helpers.nested import nested_sets
from tests.helpers.nested_pipelines import SENTENCES, example, make, nodes, train
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import parameters, randomize
from tests.helpers.tasks import task_model


@pytest.fixture(scope="module")
def trained():
    nlp = make()
    train(nlp, [example(nlp, *each) for each in SENTENCES])
    return nlp


@pytest.fixture
def unsure():
    """A component whose weights are random, so that no analysis is certain."""
    nlp = make()
    for label in ("A", "B"):
        nlp.get_pipe("crf_spans").add_label(label)
    fix_random_seed(1)
    nlp.initialize()
    pipe = nlp.get_pipe("crf_spans")
    randomize(pipe)
    for parameter in parameters(pipe):
        parameter.data.mul_(0.4)
    return nlp


# Learning


def test_nested_spans_are_learnt_by_heart(trained):
    examples = [example(trained, *each) for each in SENTENCES]
    scores = trained.evaluate(examples)
    assert scores["spans_sc_f"] == 1.0
    assert set(scores["spans_sc_per_type"]) == {"LOC", "ORG", "PER"}
    for text, gold in SENTENCES:
        assert nodes(trained(text)) == gold


def test_the_loss_is_minus_the_log_probability_of_the_gold_spans(unsure):
    pipe = unsure.get_pipe("crf_spans")
    eg = example(unsure, "a b c", [(0, 3, "A"), (1, 3, "B")])
    loss, (gradient,) = pipe.get_loss([eg], pipe.model.predict([eg.predicted]))
    (analyses,) = pipe.analyses([eg.predicted])
    known = {
        tuple(nodes_of): p
        for p, nodes_of in (
            (p, [(s.start, s.end, s.label_) for s in own]) for p, own in analyses.kbest(10**4)
        )
    }
    assert loss == pytest.approx(-known[(0, 3, "A"), (1, 3, "B")], abs=1e-4)
    expected = analyses.marginals.copy()
    expected[2, 0] -= 1
    expected[4, 1] -= 1
    numpy.testing.assert_allclose(gradient, expected, atol=1e-5)


def test_spans_that_touch_missing_annotation_are_summed_out(unsure):
    pipe = unsure.get_pipe("crf_spans")
    eg = example(unsure, "a b c", [(0, 1, "A")], missing=[(2, 3)], wrong=[(1, 3, "A"), (2, 3, "B")])
    pipe.store.missing_spans_key, pipe.store.incorrect_spans_key = "missing", "wrong"
    loss, _ = pipe.get_loss([eg], pipe.model.predict([eg.predicted]))
    (analyses,) = pipe.analyses([eg.predicted])
    total = 0.0
    for log_prob, own in analyses.kbest(10**4):
        spans = {(s.start, s.end, s.label_) for s in own}
        agrees = (0, 1, "A") in spans and all(end == 3 for _, end, _ in spans - {(0, 1, "A")})
        total += math.exp(log_prob) * (agrees and not spans & {(1, 3, "A"), (2, 3, "B")})
    assert loss == pytest.approx(-math.log(total), abs=1e-4)


def test_docs_without_the_span_group_are_not_learned_from(unsure):
    pipe = unsure.get_pipe("crf_spans")
    eg = example(unsure, "a b c", [], key="other")
    loss, (gradient,) = pipe.get_loss([eg], pipe.model.predict([eg.predicted]))
    assert loss == pytest.approx(0, abs=1e-6)
    numpy.testing.assert_allclose(gradient, 0, atol=1e-6)


def test_missing_annotation_may_add_labels_to_gold_spans(unsure):
    pipe = unsure.get_pipe("crf_spans")
    pipe.add_label("A + B")
    gold = [(0, 1, "A"), (1, 3, "A"), (2, 3, "A"), (2, 3, "B")]
    eg = example(unsure, "a b c", gold, missing=[(2, 3)])
    pipe.store.missing_spans_key = "missing"
    loss, _ = pipe.get_loss([eg], pipe.model.predict([eg.predicted]))
    (analyses,) = pipe.analyses([eg.predicted])
    total = 0.0
    for log_prob, own in analyses.kbest(10**4):
        spans = {(s.start, s.end, s.label_) for s in own}
        agrees = spans >= set(gold) and all(end == 3 for _, end, _ in spans - set(gold))
        total += math.exp(log_prob) * agrees
    assert loss == pytest.approx(-math.log(total), abs=1e-4)


@pytest.mark.parametrize("more", [[], [(0, 2, "B")]])
def test_a_wrong_span_that_is_gold_as_well_is_refused(unsure, more):
    pipe = unsure.get_pipe("crf_spans")
    pipe.add_label("A + B")
    pipe.store.incorrect_spans_key = "wrong"
    eg = example(unsure, "a b c", [(0, 2, "A"), *more], wrong=[(0, 2, "A")])
    with pytest.raises(InputError, match=r"'a b' \(A\) is a gold span .* and also a wrong span"):
        pipe.get_loss([eg], pipe.model.predict([eg.predicted]))


def test_gold_spans_that_end_inside_of_a_token_are_missing_annotation(unsure):
    pipe = unsure.get_pipe("crf_spans")
    pipe.store.missing_spans_key = "missing"
    reference = Doc(unsure.vocab, words=["a", "b", "-", "c", "d"], spaces=[1, 0, 0, 1, 0])
    eg = Example(Doc(unsure.vocab, words=["a", "b-c", "d"], spaces=[1, 1, 0]), reference)
    reference.spans["sc"] = [Span(reference, 0, 2, "A"), Span(reference, 0, 5, "B")]
    gold, missing = pipe.store.gold("spans", eg)
    assert gold == [(0, 3, "B")] and missing.tolist() == [True, True, False]
    reference.spans["sc"] = [Span(reference, 0, 5, "B")]
    reference.spans["missing"] = [Span(reference, 3, 4)]
    gold, missing = pipe.store.gold("spans", eg)
    assert gold == [(0, 3, "B")] and missing.tolist() == [False, True, False]


# Gold spans that no analysis has

CROSSING = [(0, 2, "A"), (1, 3, "B"), (2, 3, "A")]


@pytest.mark.parametrize(
    ("spans", "starts", "settings", "message"),
    [
        (CROSSING, None, {}, r"2 cross another span, such as 'b c' \(B\)"),
        ([(0, 3, "A")], [1, 0, 1], {}, "2 go over the bounds of a sentence, such as 'a b c'"),
        ([(0, 1, "A"), (0, 1, "B")], None, {"several_labels": "refuse"}, "2 have a second label"),
    ],
)
def test_gold_spans_that_do_not_fit_are_refused_by_name_or_dropped(
    spans, starts, settings, message
):
    nlp = make(**settings)
    examples = [example(nlp, "a b c", spans, starts=starts) for _ in range(2)]
    with pytest.raises(InputError, match=f'{message}.* or set unfitting = "drop"'):
        nlp.initialize(lambda: examples)
    nlp = make(unfitting="drop", **settings)
    examples = [example(nlp, "a b c", spans, starts=starts) for _ in range(2)]
    examples.append(example(nlp, "a", [(0, 1, "A")]))
    with pytest.warns(UserWarning, match=message.replace("span, such", "span, such")):
        train(nlp, examples, steps=1)


def test_with_labels_from_a_file_the_update_refuses(unsure):
    eg = example(unsure, "a b c", CROSSING)
    with pytest.raises(InputError, match="1 cross another span"):
        unsure.update([eg])


def test_spans_longer_than_the_model_allows_are_left_out_with_a_count():
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_spans", config={"model": {**task_model("spans"), "longest": 2}})
    eg = example(nlp, "a b c", [(0, 3, "A"), (1, 3, "B")])
    with pytest.warns(UserWarning, match="1 have more than 2 tokens, such as 'a b c'"):
        train(nlp, [eg])
    assert nodes(nlp("a b c")) == [(1, 3, "B")]
    (analyses,) = nlp.get_pipe("crf_spans").analyses([nlp.make_doc("a b c")])
    assert analyses.posterior([(0, 3, "B"), (1, 3, "B")])[0] == 0.0
    with pytest.raises(InputError, match="more than 2 tokens, the longest span of the model"):
        analyses.given(require=[(0, 3, "B")])
    doc = nlp.make_doc("a b c d")
    doc.spans["sc"] = [Span(doc, 0, 3, "B")]
    assert (0, 3, "B") in nodes(nlp(doc))


def test_several_labels_of_one_span_are_learnt_as_one_and_predicted_as_several():
    nlp = make()
    gold = [(0, 2, "A"), (0, 2, "B"), (1, 2, "A")]
    train(nlp, [example(nlp, "a b", gold), example(nlp, "b c", [(0, 1, "A")])])
    pipe = nlp.get_pipe("crf_spans")
    assert pipe.labels == ("A", "A + B")
    for decode in ("mbr", "viterbi", "threshold"):
        pipe.decode = decode
        assert nodes(nlp("a b")) == gold
    pipe.confidence, pipe.decode = True, "viterbi"
    doc = nlp("a b")
    assert doc.spans["sc"].attrs["scores"] == pytest.approx(pipe.posterior(doc.spans["sc"]))


def test_a_label_that_looks_joined_is_refused():
    nlp = make()
    with pytest.raises(InputError, match=r"' \+ ' in its label"):
        nlp.initialize(lambda: [example(nlp, "a b", [(0, 1, "A + B")])])


def test_flat_spans_are_a_special_case():
    nlp = make()
    flat = [("Ada met Bob", [(0, 1, "PER"), (2, 3, "PER")]), ("Bob left", [(0, 1, "PER")])]
    examples = [example(nlp, *each) for each in flat]
    train(nlp, examples)
    assert nlp.evaluate(examples)["spans_sc_f"] == 1.0


# A layer for each label


@pytest.mark.parametrize("decode", ["mbr", "viterbi", "threshold"])
def test_spans_of_different_labels_may_cross_in_layers(decode):
    nlp = make(layers="label", decode=decode, confidence=True)
    gold = [(0, 2, "A"), (0, 2, "C"), (1, 3, "B")]
    examples = [example(nlp, "a b c", gold), example(nlp, "c d", [])]
    train(nlp, examples)
    pipe = nlp.get_pipe("crf_spans")
    assert pipe.labels == ("A", "B", "C")
    doc = nlp("a b c")
    assert nodes(doc) == gold
    assert doc.spans["sc"].attrs["scores"] == pytest.approx(pipe.posterior(doc.spans["sc"]))
    (analyses,) = pipe.analyses([nlp.make_doc("a b c")])
    assert [(s.start, s.end, s.label_) for s in analyses.best] == gold
    given = analyses.given(require=[(0, 2, "B")], forbid=[(0, 2, "C")])
    assert {(s.start, s.end, s.label_) for s in given.best} == {(0, 2, "A"), (0, 2, "B")}
    assert given.log_evidence < 0
    with pytest.raises(InputError, match="required without a label"):
        analyses.given(require=[(0, 1)])
    with pytest.raises(InputError, match="overlap and are both required"):
        analyses.given(require=[(0, 1, "B"), (0, 2, "B")])


@pytest.mark.parametrize(
    ("held", "longest", "left"),
    [
        ((1, 4, "A"), None, [(0, 1, "A")]),  # a sentence ends inside of it
        ((1, 3, "A"), 1, [(0, 1, "A"), (3, 4, "A")]),  # it is too long
        ((1, 3, ""), 1, [(i, i + 1, "A") for i in range(4)]),
    ],
)
def test_predictions_in_a_layer_do_not_overlap_kept_spans_of_their_label(held, longest, left):
    nlp = make(model={**task_model("spans"), "longest": longest}, layers="label")
    gold = [(i, i + 1, label) for i in range(4) for label in "AB"]
    train(nlp, [example(nlp, "a b c d", gold)])
    for decode in ("mbr", "viterbi", "threshold"):
        nlp.get_pipe("crf_spans").decode = decode
        doc = nlp.make_doc("a b c d")
        for token in doc:
            token.is_sent_start = token.i in (0, 3)
        doc.spans["sc"] = [Span(doc, *held)]
        expected = [*left, held, *(node for node in gold if node[2] == "B")]
        assert sorted(nodes(nlp(doc))) == sorted(expected)


def test_overlap_within_a_label_is_refused_in_layers():
    nlp = make(layers="label")
    eg = example(nlp, "a b c", [(0, 2, "A"), (1, 3, "A"), (1, 3, "B")])
    with pytest.raises(InputError, match=r"1 overlap another span of their label, such as 'b c'"):
        nlp.initialize(lambda: [eg])


# Decoding


@pytest.mark.parametrize("cells", [1, 8])
def test_docs_are_decoded_by_mbr_in_batches(trained, cells, monkeypatch):
    texts = ["Ada", "", "University of Oslo", "Ada left", "nobody came"]
    expected = [nodes(doc) for doc in trained.pipe(texts)]
    assert expected[0] and expected[2]
    monkeypatch.setattr("spacy_psa.pipeline.nested.decoding.MBR_CELLS", cells)
    assert [nodes(doc) for doc in trained.pipe(texts)] == expected


def test_mbr_has_the_best_expected_f1_over_the_doc(unsure):
    pipe = unsure.get_pipe("crf_spans")
    doc = Doc(unsure.vocab, words=["a", "b", "c", "d"], sent_starts=[1, 0, 1, 0])
    (analyses,) = pipe.analyses([doc])
    every = [
        [(s + at, e + at, pipe.labels[k - 1]) for s, e, k in own]
        for at in (0, 2)
        for own in nested_sets(2, 2)
    ]
    half = len(every) // 2
    spans = sorted({span for own in every for span in own})
    chance = dict(zip(spans, analyses.posterior(spans)))
    gold = sum(chance.values())

    def f1(own):
        return 2 * sum(chance[span] for span in own) / (len(own) + gold)

    best = max(f1([*a, *b]) for a, b in itertools.product(every[:half], every[half:]))
    (predicted,) = pipe.predict([doc])
    assert f1(predicted.spans) == pytest.approx(best)
    assert predicted.scores == pytest.approx([chance[span] for span in predicted.spans], abs=1e-5)


def test_mbr_reads_sentences_of_one_document_as_one_doc(unsure):
    pipe = unsure.get_pipe("crf_spans")
    for parameter in parameters(pipe):
        if parameter.shape == (2,):  # the biases of the labels
            parameter.data.sub_(1.6)
    words = ["university", "university", "a", "Ada", "of", "university"]
    whole = Doc(unsure.vocab, words=words, sent_starts=[1, 0] * 3)
    sentences = [Doc(unsure.vocab, words=words[i : i + 2]) for i in (0, 2, 4)]
    apart = pipe.predict(sentences)
    for doc in sentences:
        doc.user_data["document"] = "one"
    parts = pipe.predict(sentences)
    found = [(2 * i + s, 2 * i + e, x) for i, own in enumerate(parts) for s, e, x in own.spans]
    (together,) = pipe.predict([whole])
    assert found == together.spans
    assert found and not any(own.spans for own in apart)  # each sentence is probably empty


def test_the_threshold_takes_all_spans_that_are_likely_also_crossing_ones(unsure):
    pipe = unsure.get_pipe("crf_spans")
    pipe.decode, pipe.threshold = "threshold", 0.02
    doc = unsure("a b c")
    spans = [(i, j, x) for i in range(3) for j in range(i + 1, 4) for x in "AB"]
    (analyses,) = pipe.analyses([unsure.make_doc("a b c")])
    likely = [s for s, p in zip(spans, analyses.posterior(spans)) if p >= 0.02]
    assert set(nodes(doc)) == set(likely)
    assert {(0, 2), (1, 3)} <= {span[:2] for span in likely}
    result = analyses.sentences[0].above(0.02)
    assert {span[:3] for span in result} == set(likely)


@pytest.mark.parametrize("decode", ["viterbi", "mbr", "threshold"])
def test_confidences_are_posteriors(trained, decode):
    pipe = trained.get_pipe("crf_spans")
    pipe.decode, pipe.confidence = decode, True
    doc = trained("University of Oslo")
    expected = pipe.posterior(doc.spans["sc"])
    pipe.decode, pipe.confidence = "mbr", False
    assert doc.spans["sc"].attrs["scores"] == pytest.approx(expected, abs=1e-5)
    assert [span._.confidence for span in doc.spans["sc"]] == pytest.approx(
        list(expected), abs=1e-5
    )


def test_the_temperature_makes_it_less_sure_and_keeps_the_best(trained):
    pipe = trained.get_pipe("crf_spans")
    doc = trained.make_doc("University of Oslo")
    before = pipe.analyses([doc])[0]
    pipe.temperature = 2.0
    after = pipe.analyses([doc])[0]
    pipe.temperature = 1.0
    assert after.entropy > before.entropy
    assert list(map(str, after.best)) == list(map(str, before.best))


def test_prediction_sets_have_all_spans_that_are_likely_enough(trained):
    pipe = trained.get_pipe("crf_spans")
    with pytest.raises(InputError, match="has no coverage yet"):
        pipe.prediction_sets([trained.make_doc("Ada left")])
    pipe.calibrated.coverage = Coverage(0.9, 0.001, 10)
    (result,) = pipe.prediction_sets([trained.make_doc("Ada left")])
    pipe.calibrated.coverage = None
    assert ("Ada", "PER") in {(span.text, span.label_) for span, _ in result}
    assert all(p >= 0.001 for _, p in result)


# Evidence


def test_spans_on_a_doc_are_kept_and_predictions_do_not_cross_them(trained):
    doc = trained.make_doc("University of Oslo")
    doc.spans["sc"] = [Span(doc, 1, 3, "PER"), Span(doc, 0, 2, "NEW")][:1]
    assert (1, 3, "PER") in nodes(trained(doc))
    doc = trained.make_doc("University of Oslo")
    doc.spans["sc"] = [Span(doc, 1, 3, "NEW")]
    assert set(nodes(trained(doc))) == {(0, 3, "ORG"), (1, 3, "NEW"), (2, 3, "LOC")}
    doc = trained.make_doc("University of Oslo")
    doc.spans["sc"] = [Span(doc, 1, 2, "NEW"), Span(doc, 0, 2, "NEW")]
    first = nodes(trained(doc))
    assert first == nodes(trained(doc))  # its own predictions are not evidence
    trained.get_pipe("crf_spans").overwrite = True
    assert nodes(trained(doc)) == SENTENCES[0][1]
    trained.get_pipe("crf_spans").overwrite = False


def test_evidence_that_crosses_is_refused(trained):
    doc = trained.make_doc("University of Oslo")
    doc.spans["sc"] = [Span(doc, 0, 2, "ORG"), Span(doc, 1, 3, "ORG")]
    with pytest.raises(InputError, match="cross and are both required"):
        trained(doc)


def test_labels_that_no_span_has_together_cannot_both_be_required(trained):
    doc = trained.make_doc("University of Oslo")
    doc.spans["sc"] = [Span(doc, 0, 3, "ORG"), Span(doc, 0, 3, "LOC"), Span(doc, 0, 3, "NEW")]
    with pytest.raises(InputError, match=r"\(LOC\) and .* \(ORG\) are labels that no span had tog"):
        trained(doc)
    doc.spans["sc"] = [Span(doc, 0, 3, "ORG"), Span(doc, 0, 3, "NEW")]
    assert {(0, 3, "ORG"), (0, 3, "NEW")} <= set(nodes(trained(doc)))


def test_groups_of_required_and_forbidden_spans_are_evidence(trained):
    pipe = trained.get_pipe("crf_spans")
    pipe.required_spans_key, pipe.forbidden_spans_key = "yes", "no"
    doc = trained.make_doc("University of Oslo")
    doc.spans["yes"] = [Span(doc, 0, 2, "PER")]
    doc.spans["no"] = [Span(doc, 2, 3)]
    result = trained(doc)
    pipe.required_spans_key = pipe.forbidden_spans_key = None
    assert (0, 2, "PER") in nodes(result)
    assert not any(span[:2] == (2, 3) for span in nodes(result))


def test_allow_names_the_labels_of_the_spans_over_a_token(trained):
    (analyses,) = trained.get_pipe("crf_spans").analyses([trained.make_doc("University of Oslo")])
    best = analyses.given(allow={2: ["ORG", "O"]}).best
    assert [(span.text, span.label_) for span in best] == [("University of Oslo", "ORG")]
    assert analyses.given(allow={0: "O", 1: "O", 2: "O"}).best == []
    with pytest.raises(InputError, match="allow must name 'O' as well"):
        analyses.given(allow={2: "ORG"})
    with pytest.raises(InputError, match="'XYZ'"):
        analyses.given(require=[(0, 1, "XYZ")])


def test_a_predicted_span_begins_and_ends_with_a_word(unsure):
    pipe = unsure.get_pipe("crf_spans")
    pipe.decode, pipe.threshold = "threshold", 0.0
    doc = pipe(Doc(unsure.vocab, words=["\n", "a", " ", "b", "\n"]))
    likely = {s[:2] for s, p in zip(nodes(doc), doc.spans["sc"].attrs["scores"]) if p}
    assert likely == {(1, 2), (1, 4), (3, 4)}


# Doors of spaCy


def test_a_saved_component_predicts_the_same(trained, tmp_path):
    trained.to_disk(tmp_path)
    others = [
        spacy.load(tmp_path),
        make().from_bytes(trained.to_bytes()),
        pickle.loads(pickle.dumps(trained)),
    ]
    for other, (text, gold) in itertools.product(others, SENTENCES):
        assert nodes(other(text)) == gold


def test_processes_give_what_one_process_gives(trained):
    texts = [text for text, _ in SENTENCES] * 3
    result = [nodes(doc) for doc in trained.pipe(texts, n_process=2, batch_size=4)]
    assert result == [nodes(trained(text)) for text in texts]


def test_a_label_can_be_added_to_a_trained_component(trained):
    nlp = make().from_bytes(trained.to_bytes())
    before = nlp.get_pipe("crf_spans").marginals(nlp.make_doc("University of Oslo"))
    assert nlp.get_pipe("crf_spans").add_label("NEW") == 1
    after = nlp.get_pipe("crf_spans").marginals(nlp.make_doc("University of Oslo"))
    assert after.shape[1] == before.shape[1] + 1
    assert nodes(nlp("University of Oslo")) == SENTENCES[0][1]


def test_a_model_without_scores_of_spans_is_refused():
    with pytest.raises(InputError, match=r"does not score spans: use spacy-psa.SpanScorer.v1"):
        spacy.blank("en").add_pipe("crf_spans", config={"model": task_model()})


def test_two_components_that_write_to_one_group_are_warned_of():
    nlp = make()
    with pytest.warns(UserWarning, match="it replaces the spans of crf_spans"):
        nlp.add_pipe("crf_spans", name="more", config={"model": task_model("spans")})


def test_a_doc_without_tokens_and_one_of_a_single_token(trained):
    assert nodes(trained("")) == []
    assert nodes(trained("Ada")) in ([], [(0, 1, "PER")])
    assert trained.get_pipe("crf_spans").analyses([trained.make_doc("")])[0].best == []


def test_a_sentence_of_1000_tokens_and_200_labels():
    nlp = make(batch_spans=1000)
    pipe = nlp.get_pipe("crf_spans")
    for i in range(200):
        pipe.add_label(f"L{i}")
    fix_random_seed(0)
    optimizer = nlp.initialize()
    words = ["a", "b", "c", "d"] * 250
    doc = Doc(nlp.vocab, words=words)
    reference = doc.copy()
    reference.spans["sc"] = [Span(reference, i, i + 3, f"L{i % 200}") for i in range(0, 990, 5)]
    losses = nlp.update([Example(doc, reference)], sgd=optimizer)
    assert math.isfinite(losses["crf_spans"])
    (analyses,) = pipe.analyses([doc])
    assert analyses.marginals.shape == (30 * 1000 - 435, 200)
    assert math.isfinite(analyses.entropy)
    pipe(doc)


def test_a_sentence_whose_spans_do_not_fit_into_memory_is_refused(unsure):
    pipe = unsure.get_pipe("crf_spans")
    eg = example(unsure, "a " * 10_001, [])
    message = "has 10,001 tokens, and the most is 10,000: use a component that sets sentence"
    with pytest.raises(InputError, match=message):
        pipe(eg.predicted)
    with pytest.raises(InputError, match=message):
        pipe.get_loss([eg], [])


def test_a_sentence_of_20000_tokens_has_memory_in_layers():
    nlp = make(layers="label", model={**task_model("spans"), "longest": 3})
    train(nlp, [example(nlp, *each) for each in SENTENCES[2:]])
    found = nodes(nlp("Ada left " * 10_000))
    assert found[0] == (0, 1, "PER") and found[-1][1] > 19_900


def test_many_labels_lower_the_most_tokens_of_a_sentence():
    nlp = make(model={**task_model("spans"), "longest": None})
    for i in range(600):
        nlp.get_pipe("crf_spans").add_label(f"L{i}")
    nlp.initialize()
    with pytest.raises(InputError, match="has 1,000 tokens, and the most is 706: use"):
        nlp("a " * 1000)


def test_a_component_learns_from_a_teacher(trained):
    nlp = make()
    texts = [example(nlp, text, [], key="other") for text, _ in SENTENCES]  # not annotated
    examples = [example(nlp, *each) for each in SENTENCES]
    fix_random_seed(0)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    learn_from(nlp.get_pipe("crf_spans"), Teacher(trained, "crf_spans"), weight=1.0)
    for _ in range(40):
        nlp.update(texts, sgd=optimizer)
    assert nlp.evaluate(examples)["spans_sc_f"] == 1.0


# From a config


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `docs.spacy`, and `model-best`, trained on them by configs/spans/bilstm.cfg."""
    path = tmp_path_factory.mktemp("spans")
    nlp = spacy.blank("en")
    docs = [example(nlp, *each).reference for each in SENTENCES * 5]
    DocBin(docs=docs).to_disk(path / "docs.spacy")
    tok2vec = "components.spans.model.tok2vec"
    overrides = {
        "paths.train": str(path / "docs.spacy"),
        "paths.dev": str(path / "docs.spacy"),
        f"{tok2vec}.embed.*.words.width": 8,
        f"{tok2vec}.embed.*.characters.hidden": 4,
        f"{tok2vec}.encode.hidden": 12,
        f"{tok2vec}.encode.input_dropout": 0.0,
        f"{tok2vec}.encode.output_dropout": 0.0,
        "components.spans.model.hidden": 12,
        "training.max_steps": 60,
        "training.eval_frequency": 60,
        "training.optimizer.learn_rate.initial_rate": 0.02,
        "training.optimizer.learn_rate.warmup_steps": 1,
        "training.optimizer.learn_rate.total_steps": 100,
    }
    train_by_config(CONFIGS / "spans" / "bilstm.cfg", path, overrides=overrides)
    return path


def test_spacy_train_learns(folder):
    performance = srsly.read_json(folder / "model-best" / "meta.json")["performance"]
    assert performance["spans_sc_f"] == 1.0
    nlp = spacy.load(folder / "model-best")
    assert nodes(nlp(SENTENCES[0][0])) == SENTENCES[0][1]


def test_calibrate_fits_the_temperature_and_the_coverage(folder, tmp_path):
    gold = {"dev": folder / "docs.spacy"}
    states, _ = calibrate(str(folder / "model-best"), gold, output=tmp_path / "calibrated")
    assert [state.figures["f1"] for state in states] == [1.0, 1.0]
    assert states[1].figures["nll"] <= states[0].figures["nll"]
    model = str(tmp_path / "calibrated")
    component, figures = calibrate_coverage(model, gold, 0.8)
    assert component.calibrated.coverage.level == 0.8 and figures["dev"]["coverage"] >= 0.8
    nlp = spacy.load(model)
    assert nlp.get_pipe("spans").temperature == states[1].temperature != 1.0
    (spans,) = nlp.get_pipe("spans").prediction_sets([nlp.make_doc(SENTENCES[0][0])])
    assert spans
