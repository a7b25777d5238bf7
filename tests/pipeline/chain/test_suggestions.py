"""Suggested spans: the distribution with them, and the weights that are learned."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.suggestions import learn_weights
from tests.helpers.analyses import enumerate_doc
from tests.helpers.pipelines import entities, make_examples, make_nlp, random_nlp, spans_of

WORDS = ["Ada", "met", "Evans", "in", "Bath"]
FOUND = {
    "names": [(0, 1, "PER"), (2, 4, "PER"), (2, 3, "PER"), (2, 4, "ORG"), (0, 1, "DATE")],
    "places": [(4, 5, "LOC"), (2, 4, "ORG"), (2, 4, "ORG")],
}
WEIGHTS = {"names": 1.5, "places": -0.8, "others": 3.0}


def with_groups(doc, groups=FOUND):
    for key, spans in groups.items():
        doc.spans[key] = [Span(doc, *span) for span in spans if span[1] <= len(doc)]
    return doc


@pytest.fixture(scope="module", params=["BIOES", "BIO"])
def nlp(request):
    return random_nlp({"scheme": request.param, "suggested_spans": WEIGHTS})


@pytest.mark.parametrize("learned", [None, {"names": {"PER": 4.0, "*": 0.5}, "places": {"LOC": 1}}])
@pytest.mark.parametrize("forbidden", [[], [(2, 4, "PER"), (0, 1, "PER")]])
def test_the_distribution_is_that_of_all_analyses_with_their_weights(nlp, learned, forbidden):
    ner = nlp.get_pipe("ner")
    doc = with_groups(Doc(nlp.vocab, words=WORDS))
    ner.suggested_spans = WEIGHTS | (learned or {})
    weights = {}
    for key, group in FOUND.items():
        for span in dict.fromkeys(group):
            own = {"*": WEIGHTS[key]} if learned is None else learned[key]
            weights[span] = weights.get(span, 0.0) + own.get(span[2], own.get("*", 0.0))
    plain = enumerate_doc(ner, doc)
    p = plain.probabilities * [
        numpy.exp(sum(weights.get(span, 0.0) for span in spans)) for spans in plain.values
    ]
    truth = plain._replace(probabilities=p / p.sum())
    truth = truth.where(lambda spans: not set(spans) & set(forbidden))
    (analyses,) = ner.analyses([doc])
    if forbidden:
        analyses = analyses.given(forbid=forbidden)
    assert spans_of(analyses.best) == list(truth.best)
    assert analyses.entropy == pytest.approx(truth.entropy, rel=1e-4)
    asked = [(s, e, x) for s in range(5) for e in range(s + 1, 6) for x in ner.labels]
    wanted = [truth.of(span) for span in asked]
    assert analyses.posterior(asked) == pytest.approx(wanted, abs=1e-5)
    if not forbidden:
        assert entities(ner(doc)) == list(truth.best)
    ner.suggested_spans = WEIGHTS


def test_the_slope_of_the_likelihood_is_zero_at_the_learned_weights(nlp):
    """The right suggestions less the expected ones are the way from the mean of the prior."""
    ner = nlp.get_pipe("ner")
    examples = make_examples(nlp)
    for example in examples:
        gold = [s for s in spans_of(example.reference.ents) if s[2] != "ORG"]
        with_groups(example.predicted, {"names": [*gold, (0, 2, "PER")], "places": [(0, 1, "LOC")]})
    part = examples[0].reference  # nothing is known of the second half
    part.set_ents(part.ents[:1], missing=[part[4:8]], default="outside")
    sources = learn_weights(ner, examples)
    assert [(s.key, s.label) for s in sources] == [
        ("names", "LOC"), ("names", "PER"), ("places", "LOC"),
    ]  # fmt: skip
    learned = {s.label: s.weight for s in sources[:2]}
    assert ner.suggested_spans["names"] == {"*": WEIGHTS["names"], **learned}
    right, expected = dict.fromkeys(sources, 0.0), dict.fromkeys(sources, 0.0)
    for example in examples:
        (analyses,) = ner.analyses([example.predicted])
        reference = example.reference
        outside = {t.i: "O" for t in reference if t.ent_iob_ == "O"}
        known = analyses.given(require=spans_of(reference.ents), allow=outside)
        for source in sources:
            group = example.predicted.spans[source.key]
            own = [span for span in spans_of(group) if span[2] == source.label]
            right[source] += sum(known.posterior(set(own)))
            expected[source] += sum(analyses.posterior(set(own)))
    for source in sources:
        way = source.weight - WEIGHTS[source.key]
        assert way == pytest.approx(right[source] - expected[source], abs=2e-3)
    assert (sources[1].suggested, sources[1].right) == (12, 5)
    ner.suggested_spans = WEIGHTS


def test_rules_and_weights_are_saved_and_used(tmp_path):
    nlp = random_nlp({"suggested_spans": {"ruler": 1.0}})
    ruler = nlp.add_pipe("span_ruler", before="ner", config={"spans_key": "ruler"})
    ruler.add_patterns([{"label": "ORG", "pattern": "Ada met"}])
    ner = nlp.get_pipe("ner")
    ner.suggested_spans = {"ruler": {"ORG": 40.0}}
    assert entities(nlp("Ada met Evans"))[:1] == [(0, 2, "ORG")]
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    assert entities(again("Ada met Evans")) == entities(nlp("Ada met Evans"))
    assert again.get_pipe("ner").suggested_spans == ner.suggested_spans


@pytest.mark.parametrize(
    "wrong", ["ruler", {"ruler": "much"}, {"ruler": {"LOC": float("inf")}}, {"": 1.0}]
)
def test_a_setting_that_cannot_be_used_is_one_error(wrong):
    with pytest.raises((InputError, ValueError), match="suggested_spans"):
        make_nlp(suggested_spans=wrong)


def test_weights_need_suggestions():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    examples = [Example(nlp.make_doc("Ada"), nlp.make_doc("Ada"))]
    with pytest.raises(InputError, match="has no suggested_spans"):
        learn_weights(ner, examples)
    ner.suggested_spans = {"rules": 1.0}
    assert learn_weights(ner, examples) == []
    assert ner.suggested_spans == {"rules": 1.0}


def test_suggestions_follow_merged_tokens_and_spans_without_tokens_suggest_nothing(nlp):
    ner = nlp.get_pipe("ner")
    ner.suggested_spans = WEIGHTS
    words = ["New York", *WORDS[2:]]
    merged = Doc(nlp.vocab, words=["New", "York", *WORDS[2:]])
    merged.spans["names"] = [Span(merged, 2, 3, "PER"), Span(merged, 1, 1, "PER")]
    with merged.retokenize() as retokenizer:
        retokenizer.merge(merged[:2])
    doc = with_groups(Doc(nlp.vocab, words=words), {"names": [(1, 2, "PER")]})
    entropies = [each.entropy for each in ner.analyses([doc, merged])]
    assert entropies[1] == pytest.approx(entropies[0], rel=1e-5)
    bare = ner.analyses([Doc(nlp.vocab, words=words)])[0].entropy
    assert entropies[0] != pytest.approx(bare, rel=1e-5)
