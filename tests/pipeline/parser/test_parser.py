"""`constituency_parser`: settings, labels, learning, distributions, saving, a pipeline."""

import itertools
import math
import warnings

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from thinc.api import Adam
from thinc.config import ConfigValidationError

from spacy_psa.errors import InputError
from tests.helpers.parsers import (
    chart_model,
    make_listening_parser,
    make_parser,
    random_parser,
    train_parser,
    tree_examples,
)
from tests.helpers.pipelines import parameters
from tests.helpers.trees import BRACKETS, constituents, flat, parse_tree, tree_doc

ENCODERS = ["BiLSTM", "FactoredTransformer"]
LOSSES = ["max_margin", "log_likelihood"]


# Settings and labels


def test_default_model_is_a_factored_one():
    parser = spacy.blank("en").add_pipe("constituency_parser")
    names = {node.name for node in parser.model.walk()}
    assert {"span_scores", "FactoredTransformer", "word_embed", "CharBiLSTM"} <= names
    assert (parser._loss, parser.max_length, parser.max_grad_norm) == ("max_margin", 1000, 0.0)


@pytest.mark.parametrize(
    "setting",
    [
        {"loss": "hinge"},
        {"max_length": 0},
        {"decode": "best"},
        {"batch_spans": 0},
        {"batch_spans": -5},
        {"tag_weight": -1.0},
        {"spans_key": ""},
        {"required_spans_key": "constituents"},
        {"forbidden_spans_key": "trees", "spans_key": "trees"},
    ],
)
def test_bad_setting_is_an_error_that_names_it(setting):
    with pytest.raises((InputError, ConfigValidationError), match=next(iter(setting))):
        make_parser(**setting)


def test_labels_are_chains_with_the_most_frequent_root_first():
    nlp = make_parser()
    train_parser(nlp)
    parser = nlp.get_pipe("parser")
    assert parser.labels[:4] == ("S", "TOP", "FRAG NP", "NP")  # at 2, 2, 1 and 1 roots
    assert set(parser.labels[4:]) == {"PP", "PRN", "S VP", "VP"}
    again = make_parser()
    unannotated = [Example(nlp.make_doc("a"), nlp.make_doc("a"))]
    again.get_pipe("parser").initialize(lambda: unannotated, labels=parser.label_data)
    assert again.get_pipe("parser").labels == parser.labels


@pytest.mark.parametrize("setting", [{"labels": "S"}, {"tags": "NN"}, {"tags": {"NN": 1}}])
def test_labels_and_tags_that_are_no_list_are_an_error_that_names_them(setting):
    nlp = make_parser(chart_model(tag_hidden=8))
    nlp.config["initialize"]["components"]["parser"] = setting
    with pytest.raises(InputError, match=f"parser: {next(iter(setting))} is .*: .* list"):
        nlp.initialize(lambda: tree_examples(nlp))


def test_no_trees_is_an_error_that_says_what_to_do():
    nlp = make_parser()
    examples = [Example(nlp.make_doc("a b"), nlp.make_doc("a b"))]
    with pytest.raises(InputError, match=r"no labels.*initialize\.components\.parser\.labels"):
        nlp.initialize(lambda: examples)


def test_label_that_appears_only_after_initialize_is_an_error():
    nlp = make_parser()
    train_parser(nlp)
    with pytest.raises(InputError, match=r"'he came'.*'S NP'.*initialize with all labels"):
        nlp.update(tree_examples(nlp, ["(S (NP (PRP he) (VBD came)))"]), sgd=Adam(0.01))


def test_not_initialized():
    nlp = make_parser()
    parser = nlp.get_pipe("parser")
    doc = nlp.make_doc("Ada met Evans")
    uses = [nlp, lambda text: parser.predict([doc]), lambda text: parser.distribution([doc])]
    for use in [*uses, lambda text: parser.kbest(doc, 2)]:
        with pytest.raises(ValueError, match="initialize"):
            use(doc.text)
    with pytest.raises(ValueError):
        nlp.update(tree_examples(nlp), sgd=Adam(0.01))


# Learning


@pytest.mark.parametrize(("loss", "encoder"), [*itertools.product(LOSSES, ENCODERS)])
def test_trees_are_learnt_by_heart(loss, encoder):
    nlp = make_parser(chart_model(encoder), loss=loss)
    history = train_parser(nlp, 90, rate=0.02)
    assert history[-1] < 0.1 * history[0]
    for text in BRACKETS:
        doc = tree_doc(nlp.vocab, text, key="gold")
        del doc.spans["gold"]
        (tree,) = nlp(doc)._.parse_trees
        assert flat(tree) == text


def test_loss_is_the_mean_over_sentences_with_trees():
    nlp = random_parser(loss="log_likelihood")
    parser, examples = nlp.get_pipe("parser"), tree_examples(nlp)
    alone = [parser.update([eg])["parser"] for eg in examples]
    without = Example(nlp.make_doc("no tree here"), nlp.make_doc("no tree here"))
    together = parser.update([*examples, without])["parser"]
    assert together == pytest.approx(numpy.mean(alone), rel=1e-4)
    assert parser.update([without], sgd=Adam(0.1))["parser"] == 0.0


def test_sentences_that_are_not_those_of_the_trees_are_left_out_with_a_warning():
    nlp = random_parser()
    reference = tree_doc(nlp.vocab, *BRACKETS[:2])
    predicted = Doc(nlp.vocab, words=[t.text for t in reference])
    with pytest.warns(UserWarning, match=r"1 sentence\(s\) of 'Ada met.*TreeCorpus"):
        assert nlp.update([Example(predicted, reference)], sgd=Adam(0.1)) == {"parser": 0.0}
    starts = [token.is_sent_start for token in reference]
    bounded = Doc(nlp.vocab, words=[t.text for t in reference], sent_starts=starts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nlp.update([Example(bounded, reference)], sgd=Adam(0.1))["parser"] > 0


def test_too_long_sentence_is_left_out_of_training_with_a_warning():
    nlp = make_parser(max_length=5)
    with pytest.warns(UserWarning, match="'Ada met Evans in Bath .*left out of training"):
        history = train_parser(nlp, 2)
    assert history[0] > 0


# Distributions


def test_confidence_is_the_share_of_trees_that_have_the_constituent():
    nlp = random_parser(confidence=True)
    parser = nlp.get_pipe("parser")
    for parameter in parameters(parser):
        parameter.data.mul_(0.3)
    doc = nlp(nlp.make_doc("Ada came"))
    ranked = parser.kbest(doc, 10**4)
    assert len(doc.spans["constituents"]) > 1
    for span in doc.spans["constituents"]:
        share = 0.0
        for log_prob, (tree,) in ranked:
            spans = parse_tree(flat(tree)).constituents
            share += math.exp(log_prob) * ((span.start, span.end, span.label_) in spans)
        assert span._.constituent_confidence == pytest.approx(share, abs=1e-3)


def test_distribution_without_words_is_an_error(parsing):
    for text in ("", "  \n "):
        with pytest.raises(ValueError, match=r"no token is left .*: use docs with words"):
            parsing.get_pipe("parser").distribution([parsing.make_doc(text)])


def test_prediction_does_not_depend_on_the_batch():
    nlp = random_parser()
    parser = nlp.get_pipe("parser")
    rng = numpy.random.default_rng(0)
    words = [word for text in BRACKETS for word in parse_tree(text).words]
    docs = [Doc(nlp.vocab, words=rng.choice(words, n).tolist()) for n in rng.integers(0, 12, 12)]
    alone = [parser.predict([doc])[0] for doc in docs]
    for budget in (1, 50, 10**6):
        parser.batch_spans = budget
        assert parser.predict(docs) == alone


def test_batches_stay_within_the_budget(monkeypatch):
    nlp = random_parser()
    parser = nlp.get_pipe("parser")
    parser.batch_spans = 60
    given = []
    predict = type(parser.model).predict

    def spy(model, docs):
        if model is parser.model:
            given.append([len(doc) * (len(doc) + 1) // 2 for doc in docs])
        return predict(model, docs)

    monkeypatch.setattr(type(parser.model), "predict", spy)
    sizes = [3, 12, 0, 5, 4, 6, 5]
    parser.predict([Doc(nlp.vocab, words=["a"] * n) for n in sizes])
    assert sum(map(len, given)) == 6
    assert all(len(batch) == 1 or sum(batch) <= 60 for batch in given) and len(given) == 3


def test_minimum_bayes_risk_trees_are_not_worse_in_expected_f1_and_know_chains():
    nlp = random_parser(loss="log_likelihood", decode="mbr", confidence=True)
    parser = nlp.get_pipe("parser")
    for parameter in parameters(parser):
        parameter.data.mul_(0.3)
    docs = [Doc(nlp.vocab, words=parse_tree(text).words) for text in BRACKETS]
    found = {}
    for decode in ("cky", "mbr"):
        parser.decode = decode
        parses = parser.predict(docs)
        right = [sum(c.confidence for c in parse.constituents) for parse in parses]
        found[decode] = [(sum_, len(parse.constituents)) for sum_, parse in zip(right, parses)]
    shares = [dist.span_marginals.double() for dist in (parser.distribution([d]) for d in docs)]
    sizes = torch.tensor([len(chain.split(" ")) - (chain == "TOP") for chain in parser.labels])
    gold = [float((share @ sizes.double()).sum()) for share in shares]
    cky, mbr = (
        [2 * right / (size + g) for (right, size), g in zip(found[name], gold)]
        for name in ("cky", "mbr")
    )
    assert all(ours >= theirs - 1e-6 for ours, theirs in zip(mbr, cky)) and mbr != cky


@pytest.mark.parametrize(
    ("setting", "value"),
    [("decode", "mbr"), ("confidence", True), ("overwrite", True), ("overwrite_tags", False)],
)
def test_a_setting_that_was_changed_is_saved(tmp_path, setting, value):
    nlp = random_parser(loss="log_likelihood")
    parser = nlp.get_pipe("parser")
    setattr(parser, setting, value)
    nlp.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    assert getattr(loaded.get_pipe("parser"), setting) == value
    again = spacy.load(tmp_path / "model").from_bytes(loaded.to_bytes())
    assert getattr(again.get_pipe("parser"), setting) == value


def test_a_way_to_choose_trees_that_does_not_exist_is_refused_at_once():
    parser = random_parser().get_pipe("parser")
    with pytest.raises(InputError, match="parser: decode is 'MBR'"):
        parser.decode = "MBR"
    assert parser.decode == "cky"


@pytest.mark.parametrize("ask", ["confidence", "kbest", "mbr"])
def test_a_margin_model_that_is_asked_for_probabilities_warns_once(ask):
    nlp = random_parser(confidence=ask == "confidence", decode="mbr" if ask == "mbr" else "cky")
    parser = nlp.get_pipe("parser")

    def use():
        doc = nlp("Ada met Evans")
        return parser.kbest(doc, 2) if ask == "kbest" else doc

    with pytest.warns(UserWarning, match="log_likelihood") as warned:
        use()
        use()
    assert len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet = random_parser(loss="log_likelihood", confidence=True)
        quiet.get_pipe("parser").kbest(quiet("Ada met Evans"), 2)


# Saving


def test_bytes_disk_and_docbin_keep_trees_and_scores(parsing, tmp_path):
    texts = ["Ada met Evans in Bath .", "Reading books helps Ada ."]
    expected = [doc.to_bytes() for doc in parsing.pipe(texts)]
    parsing.to_disk(tmp_path / "model")
    for again in (spacy.load(tmp_path / "model"), make_parser().from_bytes(parsing.to_bytes())):
        assert again.get_pipe("parser").labels == parsing.get_pipe("parser").labels
        again.get_pipe("parser").confidence = True
        assert [doc.to_bytes() for doc in again.pipe(texts)] == expected
    docs = list(parsing.pipe(texts))
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    back = list(DocBin().from_disk(tmp_path / "docs.spacy").get_docs(parsing.vocab))
    for doc, saved in zip(docs, back, strict=True):
        assert constituents(saved) == constituents(doc)
        assert saved._.parse_trees == doc._.parse_trees
        confidences = [span._.constituent_confidence for span in saved.spans["constituents"]]
        assert confidences == doc.spans["constituents"].attrs["scores"].tolist()
        assert min(confidences) > 0.5


def test_weights_of_other_labels_do_not_load_and_change_nothing(parsing):
    other = make_parser()
    train_parser(other, examples=tree_examples(other, BRACKETS[:1]))
    data = other.get_pipe("parser").to_bytes(exclude=["cfg"])
    before = parsing.to_bytes()
    with pytest.raises(InputError, match="'parser' cannot be loaded"):
        parsing.get_pipe("parser").from_bytes(data)
    assert parsing.to_bytes() == before


# In a pipeline


def test_tags_of_a_tagger_before_it_reach_the_parser():
    """The words say nothing here: only the tags do."""
    tags = {"@architectures": "spacy-psa.TagEmbed.v1", "width": 16}
    nlp = make_parser(chart_model(embed=tags), loss="log_likelihood")
    tagger = nlp.add_pipe("tagger", first=True)
    examples = tree_examples(nlp, BRACKETS[:3])
    for eg in examples:
        eg.predicted.from_array(["TAG"], eg.reference.to_array(["TAG"])[:, None])
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(0.02))
    for _ in range(60):
        nlp.update(examples, sgd=optimizer, annotates=["tagger"])
    assert tagger.labels
    assert nlp.evaluate(examples)["constituents_f"] == 1.0
    doc = Doc(nlp.vocab, words=["Ada", "met", "Evans", "in", "Bath", "."])
    with nlp.select_pipes(disable=["tagger"]):
        untagged = constituents(nlp(doc))
    assert untagged != constituents(nlp(Doc(nlp.vocab, words=[t.text for t in doc])))


def test_parser_listens_to_a_shared_tok2vec():
    nlp = make_listening_parser(chart_model(), loss="log_likelihood")
    history = train_parser(nlp, 60, 0.02)
    assert history[-1] < 0.2 * history[0]
    joined = tree_doc(nlp.vocab, *BRACKETS[:2], key="gold")
    nlp.get_pipe("parser").batch_spans = 5
    assert [flat(tree) for tree in nlp(joined)._.parse_trees] == BRACKETS[:2]
    with pytest.warns(UserWarning, match="max_length"):
        doc = nlp(Doc(nlp.vocab, words=["Ada"] * 1500))
    assert constituents(doc) == [(0, 1500, nlp.get_pipe("parser").labels[0])]
