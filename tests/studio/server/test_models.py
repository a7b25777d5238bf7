"""The page shows what the pipeline computes, with all that a parser reads on a doc."""

import itertools
import math

import numpy
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Span

from spacy_psa.analysis.attention import inspect
from spacy_psa.errors import InputError
from spacy_psa.studio.server import models
from spacy_psa.studio.server.analysis import Evidence
from spacy_psa.studio.server.models import ServedModel
from tests.helpers.nested_pipelines import DEEP, deep_pipeline
from tests.helpers.parsers import (
    chart_model,
    make_listening_parser,
    make_parser,
    random_parser,
    train_parser,
    tree_examples,
)
from tests.helpers.pipelines import (
    make_examples,
    make_nlp,
    random_nlp,
    randomize,
    small_model,
    spans_of,
    train,
)

EXACT = {"loss": "log_likelihood"}
TEXT = "the dog saw a cat . a cat ran in the park ."


@Language.component("test_boundaries")
def set_boundaries(doc):
    for token in doc:
        token.is_sent_start = token.i in (0, 6)
    return doc


@Language.component("test_tags")
def set_tags(doc):
    for token in doc:
        token.tag_ = ("NN", "DT", "VBD")[len(token) % 3]
    return doc


@Language.component("test_other_tags")
def set_other_tags(doc):
    for token in doc:
        token.tag_ = "NN"
    return doc


@Language.component("test_joining")
def join_tokens(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    return doc


@Language.component("test_constituents")
def set_constituents(doc):
    doc.spans["constituents"] = [Span(doc, 1, 4, "NP")]
    return doc


@Language.component("test_required")
def set_required(doc):
    doc.spans["yes"] = [Span(doc, 7, 9, "VP")]
    return doc


def nodes(tree):
    """The constituents of a nested tree, and its first and last token."""
    label, probability, children = tree
    nested, ends = [], []
    for child in children:
        if isinstance(child, int):
            ends += [child, child + 1]
        else:
            below, first, last = nodes(child)
            nested += below
            ends += [first, last]
    start, end = ends[0], ends[-1]
    return [(start, end, label, probability), *nested], start, end


def on_the_page(nlp):
    answer = ServedModel("m", nlp).analyse(TEXT, [], None, k=2)
    assert answer["count"] == 2
    trees = [s["components"]["parser"]["trees"][0]["tree"] for s in answer["sentences"]]
    return sorted(node for tree in trees for node in nodes(tree)[0])


def in_the_pipeline(nlp):
    doc = nlp(TEXT)
    group = doc.spans["constituents"]
    scores = group.attrs["scores"].tolist()
    return sorted((s.start, s.end, s.label_, p) for s, p in zip(group, scores, strict=True))


def assert_same(nlp):
    nlp.add_pipe("test_boundaries", first=True)
    shown = on_the_page(nlp)
    computed = in_the_pipeline(nlp)
    assert [node[:3] for node in shown] == [node[:3] for node in computed]
    assert [node[3] for node in shown] == pytest.approx([node[3] for node in computed], abs=1e-4)
    return computed


def test_a_parser_reads_the_tags_of_the_components_before_it():
    embed = {"@architectures": "spacy-psa.TagEmbed.v1", "width": 16}
    nlp = make_parser(chart_model(embed=embed), **EXACT)
    nlp.add_pipe("test_tags", first=True)
    examples = tree_examples(nlp)
    for eg in examples:
        set_tags(eg.predicted)
    train_parser(nlp, 1, examples=examples)  # a step in which the tags get rows
    randomize(nlp.get_pipe("parser"))
    with_tags = assert_same(nlp)
    with nlp.select_pipes(disable="test_tags"):
        assert in_the_pipeline(nlp) != with_tags


def test_a_parser_may_listen_to_another_component():
    nlp = make_listening_parser(chart_model(), **EXACT)
    train_parser(nlp)
    randomize(nlp.get_pipe("parser"))
    assert_same(nlp)


@pytest.mark.parametrize("settings", [{}, {"required_spans_key": "yes"}])
def test_constituents_on_a_doc_are_evidence(settings):
    nlp = random_parser(**settings, **EXACT)
    nlp.add_pipe("test_constituents", first=True)
    nlp.add_pipe("test_required", first=True)
    constituents = {node[:3] for node in assert_same(nlp)}
    assert (1, 4, "NP") in constituents
    assert not settings or (7, 9, "VP") in constituents


def test_a_parser_reads_what_an_earlier_parser_has_written():
    nlp = random_parser(required_spans_key="first", **EXACT)
    other = make_parser(**EXACT)
    train_parser(other, 20)
    nlp.add_pipe("parser", name="first", source=other, first=True)
    nlp.get_pipe("first").spans_key = "first"
    computed = {node[:3] for node in assert_same(nlp)}
    doc = nlp(TEXT)
    assert {(span.start, span.end, span.label_) for span in doc.spans["first"]} <= computed


def test_a_text_that_a_parser_gets_as_one_sentence_is_one_on_the_page():
    nlp = random_parser(**EXACT)
    nlp.add_pipe("test_boundaries")
    (sentence,) = ServedModel("m", nlp).analyse(TEXT, [], None, k=1)["sentences"]
    (best,) = sentence["components"]["parser"]["trees"]
    shown = sorted(nodes(best["tree"])[0])
    assert [node[:3] for node in shown] == [node[:3] for node in in_the_pipeline(nlp)]


def test_components_that_get_other_sentences_share_a_page():
    nlp = random_nlp()
    nlp.add_pipe("test_boundaries")
    parser = random_parser(**EXACT)
    nlp.add_pipe("parser", source=parser)
    nlp.add_pipe("ner", name="later", source=random_nlp())
    nlp.get_pipe("later").overwrite = True
    (sentence,) = ServedModel("m", nlp).analyse(TEXT, [], None, k=3)["sentences"]
    answers = sentence["components"]

    doc = nlp(TEXT)
    roots = answers["parser"]["trees"][0]["tree"][2]
    shown = sorted(node for root in roots for node in nodes(root)[0])
    group = doc.spans["constituents"]
    assert [node[:3] for node in shown] == sorted((s.start, s.end, s.label_) for s in group)
    (analyses,) = nlp.get_pipe("parser").analyses([doc])
    best = [log_prob for log_prob, _ in analyses.kbest(3)]
    logs = [math.log(tree["probability"]) for tree in answers["parser"]["trees"]]
    assert logs == pytest.approx(best, abs=1e-3)

    whole = nlp.make_doc(TEXT)
    parted = set_boundaries(nlp.make_doc(TEXT))
    for name, alone in (("ner", whole), ("later", parted)):
        (analyses,) = nlp.get_pipe(name).analyses([alone])
        wanted = analyses.kbest(3)
        rows = answers[name]["analyses"]
        assert [[tuple(item[:3]) for item in row["items"]] for row in rows] == [
            [(s.start, s.end, s.label_) for s in spans] for _, spans in wanted
        ]
        logs = [math.log(row["probability"]) for row in rows]
        assert logs == pytest.approx([log_prob for log_prob, _ in wanted], abs=1e-4)
        assert answers[name]["entropy"] == pytest.approx(analyses.entropy, abs=1e-4)
        assert len(answers[name]["entropies"]) == len(doc)


def test_evidence_on_a_text_that_a_component_gets_as_several_sentences():
    nlp = random_nlp()
    nlp.add_pipe("test_boundaries")
    nlp.add_pipe("parser", source=random_parser(**EXACT))
    asked = Evidence(component="parser", start=7, end=9, label="VP")
    (sentence,) = ServedModel("m", nlp).analyse(TEXT, [asked], None, k=1)["sentences"]
    (best,) = sentence["components"]["parser"]["trees"]
    shown = [node for root in best["tree"][2] for node in nodes(root)[0]]
    assert (7, 9, "VP") in [node[:3] for node in shown]
    doc = set_boundaries(nlp.make_doc(TEXT))
    (analyses,) = nlp.get_pipe("parser").analyses([doc])
    wanted = math.exp(analyses.given(require=[(7, 9, "VP")]).log_evidence)
    assert sentence["components"]["parser"]["evidence"] == pytest.approx(wanted, rel=1e-3)


def test_tokens_that_change_between_components_are_named():
    nlp = random_nlp()
    nlp.add_pipe("test_joining")
    nlp.add_pipe("parser", source=random_parser(**EXACT))
    with pytest.raises(InputError, match="put what does so before all of them"):
        ServedModel("m", nlp).analyse(TEXT, [], None, k=1)


def test_attention_is_that_of_the_pipeline():
    embed = {"@architectures": "spacy-psa.TagEmbed.v1", "width": 8}
    encoder = {"@architectures": "spacy-psa.SelfAttentiveBiLSTM.v1", "hidden": 8, "heads": 2}
    nlp = make_nlp(small_model(encoder=encoder, embed=embed))
    nlp.add_pipe("test_boundaries", first=True)
    nlp.add_pipe("test_tags", first=True)
    examples = make_examples(nlp)
    for eg in examples:
        set_tags(eg.predicted)
    train(nlp, 1, examples=examples)
    randomize(nlp.get_pipe("ner"))
    nlp.add_pipe("test_other_tags")
    model = ServedModel("m", nlp)
    doc = set_boundaries(set_tags(nlp.make_doc(TEXT)))
    views = inspect(nlp.get_pipe("ner"), [doc])
    for i, view in enumerate(views):
        rows = model.attention(TEXT, i)["components"]["ner"]
        for layer, row in zip(view.layers, rows, strict=True):
            wanted = layer.attention.reshape(-1, *layer.attention.shape[-2:]).mean(0)
            assert numpy.allclose(row["attention"], wanted, atol=1e-3)


def test_attention_over_several_sentences_of_a_component_is_within_each():
    nlp = random_nlp()
    nlp.add_pipe("test_boundaries")
    nlp.add_pipe("ner", name="psa", source=random_nlp())
    (row, *_) = ServedModel("m", nlp).attention(TEXT, 0)["components"]["psa"]
    weights = numpy.array(row["attention"])
    assert weights.shape == (13, 13) and len(row["gate"]) == 13
    assert not weights[:6, 6:].any() and not weights[6:, :6].any()
    (layer, *_) = inspect(nlp.get_pipe("psa"), [set_boundaries(nlp.make_doc(TEXT))])[1].layers
    assert numpy.allclose(weights[6:, 6:], layer.attention, atol=1e-3)
    assert row["gate"][6:] == pytest.approx(layer.gate.mean(1).tolist())


@pytest.mark.parametrize("layers", ["one", "label"])
def test_nested_spans_are_shown_as_their_component_finds_them(layers):
    nlp = deep_pipeline(layers=layers, unfitting="drop")
    pipe = nlp.get_pipe("crf_spans")
    model = ServedModel("m", nlp)
    (component,) = model.components
    assert component["kind"] == {"one": "nested", "label": "layers"}[layers]
    assert component["labels"] == ["LOC", "ORG", "PER"]
    (sentence,) = model.analyse(DEEP, [], None, k=3)["sentences"]
    answer = sentence["components"]["crf_spans"]
    (analyses,) = pipe.analyses([nlp.make_doc(DEEP)])
    for shown, (log_prob, spans) in zip(answer["analyses"], analyses.kbest(3), strict=True):
        assert shown["probability"] == pytest.approx(math.exp(log_prob))
        assert [tuple(item[:3]) for item in shown["items"]] == spans_of(spans)
        sure = [item[3] for item in shown["items"]]
        assert sure == pytest.approx(analyses.posterior(spans), abs=1e-5)
    n, doubts = len(nlp.make_doc(DEEP)), numpy.zeros(len(nlp.make_doc(DEEP)))
    for start, end in itertools.combinations(range(n + 1), 2):
        for p in analyses.posterior((start, end, label) for label in component["labels"]):
            doubt = -p * math.log2(p or 1) - (1 - p) * math.log2(1 - p or 1)
            doubts[[start, end - 1]] = numpy.maximum(doubts[[start, end - 1]], doubt)
    assert answer["entropies"] == pytest.approx(doubts.tolist(), abs=1e-4)


def test_evidence_on_nested_spans_counts():
    model = ServedModel("m", deep_pipeline())
    known = Evidence(component="crf_spans", start=5, end=7, label="ORG")
    (shown,) = model.analyse(DEEP, [known], None, k=1)["sentences"]
    spans = [tuple(item[:3]) for item in shown["components"]["crf_spans"]["analyses"][0]["items"]]
    assert (5, 7, "ORG") in spans and (2, 6, "ORG") not in spans
    assert 0 < shown["components"]["crf_spans"]["evidence"] < 1
    with pytest.raises(InputError, match="cross"):
        model.analyse(DEEP, [known, known.model_copy(update={"start": 4, "end": 6})], None, k=1)


def test_words_stay_for_the_next_texts_until_they_are_many(monkeypatch):
    monkeypatch.setattr(models, "REMEMBERED", 100)
    model = ServedModel("blank", spacy.blank("en"))
    for text, kept in [("Xylbrq met", True), ("Ada", True), ("a " * 60, False), ("Xylbrq", True)]:
        model.annotate([text])
        assert ("Xylbrq" in model.nlp.vocab.strings) == kept
    model.forget_words()
    assert "Xylbrq" not in model.nlp.vocab.strings


@pytest.mark.parametrize("confidence", [True, False])
def test_rows_have_probabilities_if_they_are_asked_for(confidence):
    model = ServedModel("m", random_nlp(), confidence)
    (row,) = model.annotate(["Ada met Evans"])
    assert ("spans" in row) == confidence
