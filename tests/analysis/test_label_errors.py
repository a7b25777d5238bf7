"""Damaged annotation is found with its correction; probabilities are those of enumeration."""

import random

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from thinc.api import Adam

from spacy_psa.analysis import label_errors
from spacy_psa.analysis.corrections import correct, layer_of, make_rows, read_rows, write_rows
from spacy_psa.analysis.label_errors import (
    AGREEMENT,
    MISSED,
    Suspect,
    annotation,
    find_suspects,
    ranked,
)
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.chain_analyses import ChainSentence
from tests.helpers.analyses import enumerate_doc
from tests.helpers.nested_pipelines import DEEP, deep_pipeline
from tests.helpers.parsers import make_parser, train_parser, tree_examples
from tests.helpers.pipelines import entities, make_examples, make_nlp, random_nlp, spans_of, train
from tests.helpers.tasks import make_task_nlp, train_tasks


@pytest.fixture(scope="module")
def trained():
    """A recogniser that knows the examples by heart."""
    nlp = make_nlp()
    train(nlp, steps=40, optimizer=Adam(0.02))
    return nlp


@pytest.fixture
def docs(trained):
    return [example.reference for example in make_examples(trained)]


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    """A pipeline that knows nested spans by heart, and its gold docs."""
    path = tmp_path_factory.mktemp("deep") / "gold.spacy"
    nlp = deep_pipeline(path)
    return nlp, list(DocBin().from_disk(path).get_docs(nlp.vocab))


def put(doc, *ents):
    doc.set_ents([Span(doc, *each) for each in ents])


@pytest.mark.parametrize(
    ("number", "damaged", "kind"),
    [
        (0, [(0, 2, "PER"), (3, 5, "PER")], "missed"),
        (3, [(0, 1, "PER")], "invented"),
        (1, [(1, 3, "ORG"), (7, 8, "LOC")], "bounds"),
        (2, [(0, 1, "PER"), (3, 4, "PER"), (4, 6, "PER")], "bounds"),
        (4, [(0, 1, "ORG"), (1, 2, "LOC"), (3, 4, "LOC")], "type"),
    ],
)
def test_damage_is_found_and_corrected(trained, docs, number, damaged, kind):
    before = entities(docs[number])
    put(docs[number], *damaged)
    pipe = trained.get_pipe("ner")
    result = find_suspects(trained, "ner", docs)
    first, *_ = suspects = ranked(result.suspects, pipe, docs)
    assert (first.doc, first.kind) == (number, kind)
    assert first.p_proposed > first.p_annotated and first.chance > 0.3
    assert not result.failed and not result.bare
    correct(docs, make_rows(suspects[:1], layer_of(pipe), docs))
    if kind != "bounds" or number == 1:
        assert entities(docs[number]) == before


@pytest.mark.parametrize("gold", [[(0, 2, "PER")], [(1, 2, "LOC")], []])
def test_probabilities_are_those_of_enumeration(gold):
    nlp = random_nlp()
    doc = Doc(nlp.vocab, words=["Ada", "met", "Bob"])
    put(doc, *gold)
    truth = enumerate_doc(nlp.get_pipe("ner"), Doc(nlp.vocab, words=["Ada", "met", "Bob"]))
    suspects = find_suspects(nlp, "ner", [doc]).suspects
    assert suspects
    for each in suspects:
        place = {i for s, e, _ in [*each.annotated, *each.proposed] for i in range(s, e)}
        known = truth
        if each.kind == "missed":  # given all of the annotation
            known = truth.where(lambda spans: set(gold) <= set(spans))

        def share(chosen, known=known, place=place):
            outside = place - {i for s, e, _ in chosen for i in range(s, e)}
            return known.share(
                lambda spans: (
                    set(chosen) <= set(spans)
                    and not outside.intersection(*[range(s, e) for s, e, _ in spans] or [()])
                    and not any(set(range(s, e)) & outside for s, e, _ in spans)
                )
            )

        assert each.p_proposed == pytest.approx(share(each.proposed), abs=1e-5)
        assert each.p_annotated == pytest.approx(share(each.annotated), abs=1e-5)


def test_only_the_sentence_of_a_suspect_is_computed_again(trained, docs, monkeypatch):
    """In a long doc as well, the work is that of its sentences."""
    put(docs[4], (0, 1, "ORG"), (1, 2, "ORG"), (3, 4, "LOC"))
    calls, given = [], ChainSentence.given
    monkeypatch.setattr(
        ChainSentence, "given", lambda self, *known: calls.append(self) or given(self, *known)
    )
    alone = find_suspects(trained, "ner", [docs[4]]).suspects
    once = len(calls)
    words = [token.text for token in docs[4]]
    starts = [token.i == 0 for token in docs[4]]
    long = Doc(trained.vocab, words=words * 6, sent_starts=starts * 6)
    put(long, *((s + i * len(words), e + i * len(words), label)
                for i in range(6) for s, e, label in entities(docs[4])))  # fmt: skip
    calls.clear()
    found = find_suspects(trained, "ner", [long]).suspects
    assert once > 1 and len(calls) == 6 * once and len(found) == 6 * len(alone)
    values = [(each.p_annotated, each.p_proposed) for each in sorted(found, key=lambda s: s.start)]
    for value, expected in zip(values, sorted(alone, key=lambda s: s.start) * 6):
        assert value == pytest.approx((expected.p_annotated, expected.p_proposed), abs=1e-6)


def test_the_score_counts_log_odds_kind_agreement_and_length(trained, docs):
    put(docs[4], (1, 2, "LOC"), (3, 4, "LOC"))  # Leeds is missed, and annotated in document 1
    for doc in docs:
        doc.user_data["document"] = 1
    pipe = trained.get_pipe("ner")
    first = ranked(find_suspects(trained, "ner", docs).suspects, pipe, docs)[0]
    assert (first.kind, first.as_annotated, first.as_proposed) == ("missed", 0, 1)
    total = first.log_odds + MISSED + AGREEMENT * 0.693147
    assert first.score == pytest.approx(total, abs=1e-4)
    four_tokens = first._replace(proposed=[(3, 7, "LOC")])
    assert four_tokens.score == pytest.approx(total / 2, abs=1e-4)


def test_tokens_without_annotation_are_no_errors(trained, docs):
    docs[0].set_ents([Span(docs[0], 0, 2, "PER")], missing=[docs[0][2:]])
    assert not [s for s in find_suspects(trained, "ner", docs).suspects if s.doc == 0]
    correct(docs, [])
    assert docs[0][3].ent_iob == 0


@pytest.mark.parametrize("factory", ["crf_chunker", "crf_tagger"])
def test_chunks_and_tags_are_asked_about(factory):
    nlp = make_task_nlp(factory)
    docs = [example.reference for example in train_tasks(nlp)]
    pipe = nlp.get_pipe(factory)
    before = annotation(pipe, docs[1])
    if factory == "crf_tagger":
        docs[1][0].tag_ = "DT"
    else:
        docs[1].spans["chunks"] = [Span(docs[1], 0, 1, "PP"), Span(docs[1], 1, 2, "VP")]
    first = ranked(find_suspects(nlp, factory, docs).suspects, pipe, docs)[0]
    assert (first.doc, first.kind, first.proposed) == (1, "type", before[:1])
    correct(docs, make_rows([first], layer_of(pipe), docs))
    assert annotation(pipe, docs[1]) == before
    if factory == "crf_tagger":
        docs[1][0].tag_ = "NIX"
    else:
        docs[1].spans["chunks"] = [Span(docs[1], 0, 1, "NIX")]
    ((number, reason),) = find_suspects(nlp, factory, docs, every_label=False).failed
    assert number == 1 and "the label 'NIX', which the model does not know" in reason


def test_trees_are_compared_with_the_best():
    nlp = make_parser(loss="log_likelihood")
    train_parser(nlp, steps=40)
    pipe = nlp.get_pipe("parser")
    docs = [example.reference for example in tree_examples(nlp)]
    assert not [s for s in find_suspects(nlp, "parser", docs).suspects if s.p_proposed > 0.5]
    group = docs[0].spans["constituents"]
    before = sorted(spans_of(group))
    taken = max(group, key=lambda span: span.start)
    gone = (taken.start, taken.end, taken.label_)
    docs[0].spans["constituents"] = [s for s in group if (s.start, s.end, s.label_) != gone]
    first = ranked(find_suspects(nlp, "parser", docs).suspects, pipe, docs)[0]
    assert (first.doc, first.kind, first.proposed) == (0, "missed", [gone])
    correct(docs, make_rows([first], layer_of(pipe), docs))
    assert sorted(spans_of(docs[0].spans["constituents"])) == before


@pytest.mark.parametrize("seed", range(5))
def test_any_choice_of_corrections_makes_a_tree_and_all_of_them_the_best_one(seed, monkeypatch):
    monkeypatch.setattr(label_errors, "LEAST", -1.0)  # asks about each difference
    nlp = make_parser(loss="log_likelihood")
    nlp.initialize(lambda: tree_examples(nlp))
    pipe, every = nlp.get_pipe("parser"), [eg.reference for eg in tree_examples(nlp)]
    rows = make_rows(find_suspects(nlp, "parser", every).suspects, layer_of(pipe), every)
    draw = random.Random(seed)
    some = [doc.copy() for doc in every]
    correct(some, [row for row in rows if draw.random() < 0.5])
    for doc in some:
        spans = spans_of(doc.spans["constituents"])
        assert not [(a, b) for a in spans for b in spans if a[0] < b[0] < a[1] < b[1]]
    correct(every, rows)
    for doc, gold in zip(every, tree_examples(nlp)):
        best = nlp(gold.predicted)
        assert spans_of(doc.spans["constituents"]) == spans_of(best.spans["constituents"])


@pytest.mark.parametrize(
    ("kind", "gone", "damaged"),
    [
        ("missed", (2, 6, "ORG"), []),
        ("type", (2, 8, "ORG"), [(2, 8, "LOC")]),
        ("bounds", (2, 9, "PER"), [(1, 9, "PER")]),
        ("bounds", (5, 6, "LOC"), [(5, 7, "LOC")]),
        ("invented", None, [(6, 8, "PER")]),
    ],
)
def test_nested_spans_are_compared_with_the_best(deep, kind, gone, damaged):
    nlp, docs = deep
    pipe, doc = nlp.get_pipe("crf_spans"), docs[-1].copy()
    before = spans_of(doc.spans["sc"])
    doc.spans["sc"] = [Span(doc, *node) for node in before if node != gone] + [
        Span(doc, *node) for node in damaged
    ]
    (first, *_) = ranked(find_suspects(nlp, "crf_spans", [doc]).suspects, pipe, [doc])
    assert (first.kind, first.annotated, first.proposed) == (kind, damaged, [gone] if gone else [])
    correct([doc], make_rows([first], layer_of(pipe), [doc]))
    assert sorted(spans_of(doc.spans["sc"])) == sorted(before)


def test_what_cannot_be_asked_about_is_an_error(trained, docs):
    put(docs[0], (0, 2, "VESSEL"))
    with pytest.raises(InputError, match="label 'VESSEL', which the model does not know"):
        find_suspects(trained, "ner", docs)
    result = find_suspects(trained, "ner", docs, every_label=False)
    assert [number for number, _ in result.failed] == [0]
    bare = [Doc(spacy.blank("en").vocab, words=["Ada"])]
    assert find_suspects(trained, "ner", bare) == ([], [], 1)
    row = {"number": 1, "doc": 1, "layer": "ents", "annotated": [[0, 1, "ORG"]], "proposed": []}
    with pytest.raises(InputError, match="row 1: document 1 does not have the annotation"):
        correct(docs, [row])


def test_nodes_that_the_model_cannot_have_are_no_suspects_and_are_named():
    nlp = make_parser(loss="log_likelihood")
    train_parser(nlp, steps=40)
    docs = [example.reference for example in tree_examples(nlp)]
    longest = max(docs, key=len)
    nlp.get_pipe("parser").max_length = len(longest) - 1
    found = find_suspects(nlp, "parser", docs)
    (number, reason), *others = found.failed
    assert docs[number] is longest and not others
    assert f"{len(longest.spans['constituents'])} annotated span(s)" in reason
    assert all(suspect.doc != number for suspect in found.suspects)


def test_nested_spans_over_sentences_are_no_suspects_and_are_named(deep):
    nlp, docs = deep
    doc = Doc(nlp.vocab, words=[t.text for t in docs[-1]], sent_starts=[1, 0, 0, 1, *[0] * 5])
    doc.spans["sc"] = [Span(doc, 2, 6, "ORG")]
    found = find_suspects(nlp, "crf_spans", [doc])
    assert [number for number, _ in found.failed] == [0]
    assert all((2, 6, "ORG") not in suspect.annotated for suspect in found.suspects)


def test_entities_over_sentences_are_named_and_the_rest_of_the_doc_is_asked_about(trained, docs):
    words = [token.text for doc in docs for token in doc]
    doc = Doc(
        trained.vocab,
        words=words,
        sent_starts=[i in (0, 1, len(docs[0])) for i in range(len(words))],
    )
    put(doc, (0, 2, "PER"), (3, 4, "PER"))
    found = find_suspects(trained, "ner", [doc])
    ((number, reason),) = found.failed
    assert number == 0 and "1 annotated span(s) cross sentences" in reason
    assert found.suspects and all(each.start >= 2 for each in found.suspects)
    pipe = trained.get_pipe("ner")
    correct([doc], make_rows(found.suspects, layer_of(pipe), [doc]))
    assert (0, 2, "PER") in entities(doc)


@pytest.mark.parametrize("key", ["ents", "tags"])
def test_a_group_with_the_name_of_another_layer_is_corrected(key):
    nlp = deep_pipeline(spans_key=key)
    pipe = nlp.get_pipe("crf_spans")
    doc = nlp(DEEP)
    wanted = spans_of(doc.spans[key])
    doc.spans[key] = list(doc.spans[key])[1:]
    suspects = find_suspects(nlp, "crf_spans", [doc]).suspects
    missed = [suspect for suspect in suspects if suspect.proposed == [wanted[0]]]
    correct([doc], make_rows(missed, layer_of(pipe), [doc]))
    assert sorted(spans_of(doc.spans[key])) == sorted(wanted)
    assert not doc.ents and not doc.has_annotation("TAG")


def test_rows_with_odd_line_ends_in_words_are_read_as_they_were_written(tmp_path):
    doc = Doc(spacy.blank("en").vocab, words=["Ada", "\u2028", "met\x85", "Bob"])
    rows = make_rows([Suspect(0, "invented", [(0, 1, "PER")], [], 0.01, 0.99)], "ents", [doc])
    write_rows(rows, tmp_path / "rows.jsonl")
    assert [row["words"] for row in read_rows(tmp_path / "rows.jsonl")] == [rows[0]["words"]]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("chance", "0.5"),
        ("number", [1]),
        ("doc", None),
        ("words", "Ada"),
        ("proposed", 1),
        ("proposed", [[0, 2]]),
        ("proposed", [[2, 1, "PER"]]),
        ("annotated", [[0, "1", "PER"]]),
    ],
)
def test_a_row_that_was_edited_wrongly_is_named(tmp_path, key, value):
    doc = Doc(spacy.blank("en").vocab, words=["Ada"])
    rows = make_rows([Suspect(0, "missed", [], [(0, 1, "PER")], 0.1, 0.9)], "ents", [doc])
    write_rows([rows[0], rows[0] | {key: value}], tmp_path / "rows.jsonl")
    with pytest.raises(InputError, match=r"rows\.jsonl:2: not a line"):
        read_rows(tmp_path / "rows.jsonl")


def test_rows_that_an_editor_of_windows_saved_are_read(tmp_path):
    doc = Doc(spacy.blank("en").vocab, words=["Ada"])
    rows = make_rows([Suspect(0, "missed", [], [(0, 1, "PER")], 0.1, 0.9)], "ents", [doc])
    write_rows(rows, tmp_path / "rows.jsonl")
    text = (tmp_path / "rows.jsonl").read_text().replace("\n", "\r\n")
    (tmp_path / "rows.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert [row["words"] for row in read_rows(tmp_path / "rows.jsonl")] == [["Ada "]]


def test_a_correction_over_other_entities_is_an_error(docs):
    row = {"number": 1, "doc": 0, "layer": "ents", "annotated": [], "proposed": [[1, 3, "ORG"]]}
    with pytest.raises(InputError, match="row 1: its correction overlaps other entities"):
        correct(docs, [row])
    with pytest.raises(InputError, match="row 1: there is no document -1"):
        correct(docs, [row | {"doc": -1}])
