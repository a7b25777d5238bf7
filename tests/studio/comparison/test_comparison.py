"""The whole comparison: counted by hand, and against other ways to the same figures."""

import json

import numpy
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.scoring.calibration import score_calibration
from spacy_psa.studio.comparison.answers import Answers
from spacy_psa.studio.comparison.comparison import Comparison
from spacy_psa.studio.comparison.units import find_component, read_gold
from tests.helpers.analyses import enumerate_doc
from tests.helpers.compared import FIRST, GOLD, SECOND, compared, rules, write_gold
from tests.helpers.nested_pipelines import deep_pipeline
from tests.helpers.pipelines import (
    MARKED,
    entities,
    make_examples,
    random_nlp,
    read_marked,
    small_model,
    train,
)


@pytest.fixture
def gold(tmp_path):
    return write_gold(tmp_path / "gold.spacy")


def test_a_report_has_the_errors_that_were_counted_by_hand(gold):
    report = compared({"first": rules(FIRST), "second": rules(SECOND)}, gold)
    assert [(error["sentence"], error["gold"], *error["kinds"]) for error in report["errors"]] == [
        (0, [0, 2, "PER"], "right", "wrong bounds and type"),
        (0, [3, 4, "PER"], "wrong type", "right"),
        (0, [5, 7, "LOC"], "wrong bounds", "right"),
        (1, [0, 1, "LOC"], "right", "missed"),
        (2, None, "invented", "right"),
    ]
    assert report["confusion"][0] == {
        "rows": [[2, 0, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 1, 0]],
        "moved": [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    }
    shown = report["sentences"][1]
    assert [token for token, _ in shown["tokens"]] == ["Leeds", "won", "."]
    assert shown["found"] == [[[0, 1, "LOC"]], []]
    assert [row["sentences"] for row in report["lengths"][0]] == [2, 1, 0, 0, 0, 0]
    assert report["gold"]["units"] == 4
    schemes = [own["type"] for own in report["partial_credit"]]
    assert [(own["correct"], own["incorrect"], own["missed"]) for own in schemes] == [
        (3, 1, 0),
        (2, 1, 1),
    ]


def test_a_component_of_spacy_has_no_probabilities(gold):
    report = compared({"rules": rules(FIRST)}, gold)
    assert report["models"][0]["posteriors"] is False
    assert report["calibration"] == [None]
    assert {error["sure"][0] for error in report["errors"]} == {None}
    assert report["p_value"] is None


def test_a_report_is_plain_data(gold, trained):
    report = compared({"rules": rules(FIRST), "crf": trained}, gold, train=gold)
    assert json.loads(json.dumps(report, allow_nan=False))["format"] == 1


@pytest.mark.parametrize("scheme", ["BIO", "BIOES"])
def test_probabilities_are_those_of_all_analyses_enumerated(tmp_path, scheme):
    lines = ["[Ada Lovelace|PER] met [Bob|PER]", "[Bath|LOC] and [Acme|ORG]", "Nobody came"]
    gold = write_gold(tmp_path / "gold.spacy", lines)
    nlps = [random_nlp({"scheme": scheme}) for _ in range(2)]
    for parameter in nlps[1].get_pipe("ner").model.walk():
        for shim in parameter.shims:
            for values in shim.module.parameters():
                values.data *= -1  # another model
    report = compared({"one": nlps[0], "other": nlps[1]}, gold)
    assert len(report["errors"]) > 3
    asked = 0
    for error in report["errors"]:
        words = read_marked(lines[error["sentence"]])[0]
        for model, nlp in enumerate(nlps):
            truth = enumerate_doc(nlp.get_pipe("ner"), Doc(nlp.vocab, words=words))
            for unit, value in zip(error["units"], error["posteriors"][model], strict=True):
                assert value == pytest.approx(truth.of(tuple(unit)), abs=2e-6)
                asked += 1
            own = error["found"][model]
            wanted = truth.of(tuple(own)) if own else 1 - truth.of(tuple(error["units"][0]))
            assert error["sure"][model] == pytest.approx(wanted, abs=2e-6)
    assert asked > 10


def test_calibration_is_that_of_the_calibration_scorer(tmp_path, trained):
    gold = write_gold(tmp_path / "gold.spacy", [*MARKED, *GOLD])
    report = compared({"crf": trained}, gold)
    ner = trained.get_pipe("ner")
    ner.confidence = True
    examples = make_examples(trained, [*MARKED, *GOLD])
    predicted = [Example(trained(example.predicted), example.reference) for example in examples]
    wanted = score_calibration(predicted, spans_key="ner", gold_key=None, bins=15)
    (measures,) = report["calibration"]
    for name in ("ece", "ece_adaptive", "brier", "aupr"):
        assert measures[name] == pytest.approx(wanted[f"ents_{name}"], abs=1e-6)
    values = {name: report["scores"][0]["models"][0][name]["value"] for name in "prf"}
    assert values == pytest.approx({name: wanted[f"ents_{name}"] for name in "prf"})
    assert sum(b["size"] for b in measures["bins"]) == sum(len(e.predicted.ents) for e in predicted)


def test_a_label_that_a_model_does_not_know_has_no_probability(tmp_path, trained):
    gold = write_gold(tmp_path / "gold.spacy", ["[Ada|ROBOT] met [Babbage|PER] ."])
    report = compared({"crf": trained}, gold)
    error = next(error for error in report["errors"] if error["gold"] == [0, 1, "ROBOT"])
    assert error["posteriors"][0][error["units"].index([0, 1, "ROBOT"])] == 0.0


def test_words_that_training_had_are_told_from_others(tmp_path, gold):
    train_path = write_gold(tmp_path / "train.spacy", ["[Bob|PER] met Town .", "[Leeds|LOC] Acme"])
    report = compared({"first": rules(FIRST)}, gold, train=train_path)
    (rows,) = report["seen"]
    counts = {row["name"]: (row["right"], row["predicted"], row["gold"]) for row in rows}
    assert counts == {
        "seen with this type": (1, 1, 2),  # gold Bob and Leeds; found Leeds
        "all words seen": (0, 2, 1),  # gold Acme Town; found Bob (LOC) and Town
        "a word not seen": (1, 2, 1),  # gold Ada Lovelace; found it and Nobody
    }
    assert compared({"first": rules(FIRST)}, gold)["seen"] is None


def test_tags_are_compared_too(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_tagger", name="tagger", config={"model": small_model()})
    examples = []
    for example in make_examples(nlp):
        for token in example.reference:
            token.tag_ = "NAME" if token.ent_type else "WORD"
        examples.append(example)
    train(nlp, 30, examples=examples)
    references = [example.reference for example in examples]
    references[0][0].tag_ = "WORD"
    DocBin(docs=references).to_disk(tmp_path / "gold.spacy")
    report = compared({"crf": nlp}, tmp_path / "gold.spacy")
    assert report["units"] == "tags"
    predicted = [nlp(Doc(nlp.vocab, words=[t.text for t in doc])) for doc in references]
    pairs = [(a, b) for d, e in zip(predicted, references) for a, b in zip(d, e)]
    right = sum(a.tag_ == b.tag_ for a, b in pairs)
    assert report["scores"][0]["models"][0]["counts"] == [right, len(pairs), len(pairs)]
    assert len(report["errors"]) == len(pairs) - right >= 1
    error = report["errors"][0]
    tagger = nlp.get_pipe("tagger")
    doc = Doc(nlp.vocab, words=[t.text for t in references[error["sentence"]]])
    row = tagger.marginals(doc)[error["units"][0][0]]
    wanted = [row[tagger.labels.index(label)] for _, _, label in error["units"]]
    assert error["posteriors"][0] == pytest.approx(wanted, abs=2e-6)


@spacy.Language.component("test_comparison_tags")
def set_tags(doc):
    for token in doc:
        token.tag_ = "NAME" if token.text[0].isupper() else "WORD"
    return doc


def test_probabilities_are_those_before_the_component_has_written_its_own_tags(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("test_comparison_tags")
    embed = {"@architectures": "spacy-psa.TagEmbed.v1", "width": 8}
    nlp.add_pipe("crf_tagger", name="tagger", config={"model": small_model(embed=embed)})
    examples = make_examples(nlp)
    for example in examples:
        set_tags(example.predicted)
        for token in example.reference:
            token.tag_ = "WORD" if token.text[0].isupper() else "NAME"  # the other one
    train(nlp, 3, examples=examples)
    DocBin(docs=[example.reference for example in examples]).to_disk(tmp_path / "gold.spacy")
    report = compared({"crf": nlp}, tmp_path / "gold.spacy")
    tagger = nlp.get_pipe("tagger")
    docs = [set_tags(example.reference.copy()) for example in examples]
    for error in report["errors"]:
        marginals = tagger.marginals(docs[error["sentence"]])
        wanted = [marginals[i, tagger.labels.index(label)] for i, _, label in error["units"]]
        assert error["posteriors"][0] == pytest.approx(wanted, abs=2e-6)
    assert report["errors"]


def test_chunks_are_compared_by_their_span_group(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_chunker", name="chunker", config={"model": small_model()})
    examples = make_examples(nlp)
    for example in examples:
        example.reference.spans["chunks"] = list(example.reference.ents)
    train(nlp, 40, examples=examples)
    gold = [example.reference for example in examples]
    gold[3].spans["chunks"] = [Span(gold[3], 0, 1, "PER")]
    gold.append(Doc(nlp.vocab, words=["Ada", "came"]))  # without the group
    DocBin(docs=gold).to_disk(tmp_path / "gold.spacy")
    report = compared({"crf": nlp}, tmp_path / "gold.spacy")
    assert report["units"] == "chunks"
    assert (3, ["missed"]) in [(e["sentence"], e["kinds"]) for e in report["errors"]]
    assert all(error["sentence"] < len(gold) - 1 for error in report["errors"])


def test_a_model_reads_the_gold_words_whatever_its_tokenizer_does(tmp_path):
    nlp = rules({"Ada-Bob": "PER"})
    doc = Doc(nlp.vocab, words=["Ada-Bob", "can't"], spaces=[True, False])
    doc.set_ents([Span(doc, 0, 1, "PER")])
    assert len(nlp.make_doc(doc.text)) != len(doc)
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    nlp.get_pipe("rules").add_patterns([{"label": "PER", "pattern": [{"ORTH": "Ada-Bob"}]}])
    report = compared({"rules": nlp}, tmp_path / "gold.spacy")
    assert report["scores"][0]["models"][0]["counts"] == [1, 1, 1]


def test_a_pipeline_that_changes_tokens_is_an_error_that_names_the_token(gold):
    nlp = rules(FIRST)
    nlp.add_pipe("merge_entities", before="rules")
    nlp.add_pipe("entity_ruler", name="early", before="merge_entities").add_patterns(
        [{"label": "PER", "pattern": "Ada Lovelace"}]
    )
    comparison = Comparison({"merging": nlp}, gold, component="rules")
    with pytest.raises(InputError, match=r"merging: returns 'Ada Lovelace' as token 0 .* 'Ada'"):
        for _, step in comparison.steps():
            step()


def test_components_after_the_compared_one_do_not_run(gold, trained):
    trained.add_pipe("entity_ruler", config={"overwrite_ents": True}).add_patterns(
        [{"label": "LOC", "pattern": "Bob"}]
    )
    alone = [entities(trained.get_pipe("ner")(doc)) for doc in _bare(gold, trained)]
    report = compared({"crf": trained}, gold)
    predicted = report["scores"][0]["models"][0]["counts"][1]
    assert predicted == sum(map(len, alone))


def _bare(gold, nlp):
    docs = DocBin().from_disk(gold).get_docs(nlp.vocab)
    return [Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs]


def test_batches_change_nothing(tmp_path, trained, monkeypatch):
    gold = write_gold(tmp_path / "gold.spacy", [*MARKED, *GOLD])
    whole = compared({"crf": trained}, gold)
    monkeypatch.setattr("spacy_psa.studio.comparison.answers.BATCH", 10)
    component = find_component("crf", trained, None)
    assert len(Answers("crf", trained, component, read_gold(gold, component.units), gold)) > 3
    parts = compared({"crf": trained}, gold)
    assert [e["kinds"] for e in parts["errors"]] == [e["kinds"] for e in whole["errors"]]
    for part, other in zip(parts["errors"], whole["errors"], strict=True):
        numpy.testing.assert_allclose(part["posteriors"][0], other["posteriors"][0], atol=1e-5)


@pytest.mark.parametrize("count", [0, 3])
def test_only_one_or_two_models_are_compared(gold, count):
    with pytest.raises(InputError, match="one or two can be compared"):
        Comparison({str(i): rules(FIRST) for i in range(count)}, gold)


def test_nested_spans_are_compared_with_those_of_spancat(tmp_path):
    gold = tmp_path / "gold.spacy"
    ours, theirs = deep_pipeline(gold), spacy.blank("en")
    ruler = theirs.add_pipe("span_ruler", config={"spans_key": "sc"})
    ruler.add_patterns([{"label": "LOC", "pattern": "Oslo"}, {"label": "ORG", "pattern": "Bank"}])
    report = compared({"ours": ours, "theirs": theirs}, gold)
    assert report["units"] == "spans"
    counts = [model["counts"] for model in report["scores"][0]["models"]]
    assert counts == [[11, 11, 11], [1, 3, 11]]
    assert [model["posteriors"] for model in report["models"]] == [True, False]
    pipe = ours.get_pipe("crf_spans")
    for error in report["errors"]:
        words = [word for word, _ in report["sentences"][error["sentence"]]["tokens"]]
        (analyses,) = pipe.analyses([Doc(ours.vocab, words=words)])
        wanted = analyses.posterior(tuple(unit) for unit in error["units"])
        assert error["posteriors"] == [pytest.approx(wanted, abs=1e-6), None]
