"""Trees as a filter of nested spans, and nested spans as constituents of trees."""

import math

import pytest
from spacy.tokens import Span

from spacy_psa.errors import InputError
from tests.helpers.nested_pipelines import example, make
from tests.helpers.parsers import random_parser
from tests.helpers.pipelines import randomize, spans_of

TREE = [(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]


def every(pipe, doc):
    """Each set of spans of a doc with its probability."""
    return {frozenset(spans_of(own)): math.exp(p) for p, own in pipe.kbest(doc, 10**5)}


@pytest.mark.parametrize("layers", ["one", "label"])
def test_only_constituents_are_predicted(layers):
    nlp = make(layers=layers, constituents_key="constituents")
    nlp.initialize(lambda: [example(nlp, "a b c", [(0, 3, "A"), (1, 3, "B")])])
    pipe = nlp.get_pipe("crf_spans")
    randomize(pipe)
    doc = nlp.make_doc("a b c")
    free = every(pipe, doc)
    doc.spans["constituents"] = [Span(doc, *node) for node in TREE]
    places = {node[:2] for node in TREE}
    wanted = {own: p for own, p in free.items() if {span[:2] for span in own} <= places}
    total = sum(wanted.values())
    filtered = every(pipe, doc)
    assert filtered.keys() == wanted.keys() and len(wanted) < len(free)
    for own, p in filtered.items():
        assert p == pytest.approx(wanted[own] / total, rel=1e-3)
    (analyses,) = pipe.analyses([doc])
    assert analyses.given(require=[(0, 2, "B")]).posterior([(0, 2, "B")]) == [pytest.approx(1)]


def test_mentions_are_constituents_with_any_label():
    settings = {"loss": "log_likelihood"}
    nlp, plain = random_parser(**settings, mentions_key="sc"), random_parser(**settings)
    doc, other = (each.make_doc("the dog saw a cat") for each in (nlp, plain))
    doc.spans["sc"] = [Span(doc, 1, 4, "ORG"), Span(doc, 1, 4, "LOC"), Span(doc, 2, 3, "PER")]
    ours = nlp.get_pipe("parser").kbest(doc, 20)
    (analyses,) = plain.get_pipe("parser").analyses([other])
    theirs = analyses.given(require=[(1, 4), (2, 3)]).kbest(20)
    assert [p for p, _ in ours] == pytest.approx([p for p, _ in theirs], abs=1e-4)
    assert [str(trees[0]) for _, trees in ours[:3]] == [str(trees[0]) for _, trees in theirs[:3]]
    places = {node[:2] for node in spans_of(nlp(doc).spans["constituents"])}
    assert {(1, 4), (2, 3)} <= places
    doc.spans["sc"] = [Span(doc, 0, 2, "ORG"), Span(doc, 1, 4, "LOC")]
    with pytest.raises(InputError, match="cross"):
        nlp.get_pipe("parser").analyses([doc])


@pytest.mark.parametrize("key", ["", "sc"])
def test_groups_of_other_components_have_names_of_their_own(key):
    for setting in ("constituents_key", "missing_spans_key", "incorrect_spans_key"):
        with pytest.raises(InputError, match=f"crf_spans: {setting}"):
            make(**{setting: key})
    with pytest.raises(InputError, match=r"parser: mentions_key"):
        random_parser(spans_key="sc", mentions_key=key)
