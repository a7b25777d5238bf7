"""What other models can do, models over a pretrained encoder can do as well."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import DocBin, Span
from thinc.api import Adam

from spacy_psa.modules import int8
from tests.helpers.commands import command, succeed
from tests.helpers.encoders import WITHOUT_DROPOUT, pretrained, write_encoder
from tests.helpers.parsers import make_parser, train_parser, tree_examples
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import (
    TEXTS,
    make_examples,
    make_nlp,
    small_encoder,
    small_model,
    train,
)
from tests.helpers.trainings import assert_parts_are_the_batch, digests, killed_at, make_config, run

TWO = "Ada left . Bob met Ada ."


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"), **WITHOUT_DROPOUT)


def crf(tok2vec):
    return {"@architectures": "spacy-psa.CRF.v1", "potentials": "transition", "tok2vec": tok2vec}


def kinds(folder):
    shape = {"@architectures": "spacy-psa.WordShape.v1"}
    return {
        "tuned": crf(
            {
                "@architectures": "spacy-psa.ConcatEmbed.v1",
                "*": {"encoder": pretrained(folder), "shape": shape},
            }
        ),
        "frozen": crf(
            {
                "@architectures": "spacy.Tok2Vec.v2",
                "embed": pretrained(folder, frozen=True, layers=[[1, 2], [0, 1]]),
                "encode": small_encoder("BiLSTM"),
            }
        ),
        "lstm": small_model("transition"),
    }


@pytest.fixture(scope="module")
def models(encoder, tmp_path_factory):
    """The folders of trained pipelines for entities."""
    folder = tmp_path_factory.mktemp("models")
    for name, model in kinds(encoder).items():
        nlp = make_nlp(model, confidence=True)
        train(nlp, 40, Adam(0.005))
        nlp.to_disk(folder / name)
    return folder


@pytest.fixture(scope="module")
def parser(encoder, tmp_path_factory):
    """The folder of a trained parser."""
    encode = {"@architectures": "spacy-psa.BiLSTM.v1", "hidden": 8}
    tok2vec = {
        "@architectures": "spacy.Tok2Vec.v2", "embed": pretrained(encoder), "encode": encode,
    }  # fmt: skip
    model = {"@architectures": "spacy-psa.ChartParser.v1", "hidden": 16, "tok2vec": tok2vec}
    nlp = make_parser(model, loss="log_likelihood")
    train_parser(nlp, 20)
    path = tmp_path_factory.mktemp("parser") / "model"
    nlp.to_disk(path)
    return path


BOTH = pytest.mark.parametrize("name", ["tuned", "frozen"])


@BOTH
@pytest.mark.parametrize("other", ["tuned", "lstm"])
def test_it_is_joined_with_models_of_any_encoder(models, tmp_path, name, other):
    if name == other:
        other = "frozen"
    succeed(command("ensemble")(models / name, models / other, "--output", tmp_path / "joined"))
    joined, *members = (
        spacy.load(path).get_pipe("ner")
        for path in (tmp_path / "joined", models / name, models / other)
    )
    doc = spacy.blank("en")(TEXTS[0])
    scores = [pipe.model.predict([doc])[0] for pipe in (joined, *members)]
    numpy.testing.assert_allclose(scores[0], (scores[1] + scores[2]) / 2, atol=1e-5)


def test_a_parser_is_joined_and_rounded(parser, tmp_path, monkeypatch):
    monkeypatch.setattr(int8, "LEAST_WORK", 0)
    spacy.load(parser).to_disk(tmp_path / "other")
    succeed(command("ensemble")(parser, tmp_path / "other", "--output", tmp_path / "joined"))
    succeed(command("quantize")(parser, tmp_path / "int8"))
    docs = [eg.predicted for eg in tree_examples(spacy.blank("en"))]
    joined, rounded, plain = (
        spacy.load(path).get_pipe("parser").distribution(docs).span_marginals
        for path in (tmp_path / "joined", tmp_path / "int8", parser)
    )
    torch.testing.assert_close(joined, plain)
    assert 0 < (rounded - plain).abs().max() < 0.2


@BOTH
def test_the_linear_layers_of_the_encoder_are_rounded(models, tmp_path, monkeypatch, name):
    monkeypatch.setattr(int8, "LEAST_WORK", 0)
    succeed(command("quantize")(models / name, tmp_path / "int8"))
    nlp, plain = (spacy.load(path) for path in (tmp_path / "int8", models / name))
    [module] = [
        shim.module.net
        for node in nlp.get_pipe("ner").model.walk()
        for shim in node.shims
        if hasattr(shim._model, "net")
    ]
    assert not any(type(layer) is torch.nn.Linear for layer in module.modules())
    for text in TEXTS:
        ours, theirs = (each.get_pipe("ner").marginals(each(text)) for each in (nlp, plain))
        assert abs(ours - theirs).max() < 0.2


@BOTH
def test_it_teaches_a_small_student(models, tmp_path, corpus, name):
    config = make_config(corpus, max_steps=2, eval_frequency=1)
    config["components"]["ner"]["model"] = small_model("transition")
    config["training"]["logger"]["output_file"] = None
    config.to_disk(tmp_path / "config.cfg")
    succeed(command("distill")(models / name, tmp_path / "config.cfg", "-o", tmp_path / "student"))
    assert b"bert" not in (tmp_path / "student" / "model-last" / "config.cfg").read_bytes()


@BOTH
def test_it_rehearses_what_it_predicted(models, name):
    nlp = spacy.load(models / name)
    optimizer = nlp.resume_training()
    examples = make_examples(nlp)
    losses = [nlp.rehearse(examples, sgd=optimizer)["ner"] for _ in range(5)]
    assert losses[-1] > 0
    assert all(numpy.isfinite(losses))


@BOTH
def test_evidence_and_sentence_bounds_count(models, name):
    nlp = spacy.load(models / name)
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc(TWO)
    for token in doc:
        token.is_sent_start = token.i in (0, 3)
    [analyses] = ner.analyses([doc])
    assert [(s.start, s.end) for s in analyses.sentences] == [(0, 3), (3, 7)]
    best = analyses.given(require=[(0, 1, "LOC")], forbid=[(3, 4, "PER")]).best
    found = [(span.start, span.end, span.label_) for span in best]
    assert (0, 1, "LOC") in found and (3, 4, "PER") not in found


def test_commands_annotate_calibrate_and_compare(models, corpus, tmp_path):
    tuned = tmp_path / "tuned"
    spacy.load(models / "tuned").to_disk(tuned)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf8")
    for name, *arguments in (
        ("annotate", tuned, tmp_path / "texts.txt", tmp_path / "out.jsonl"),
        ("calibrate", tuned, corpus),
        ("compare", corpus, tuned, models / "frozen", "-o", tmp_path / "page.html"),
    ):
        succeed(command(name)(*arguments))
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf8").splitlines()
    assert len(lines) == len(TEXTS)
    assert spacy.load(tuned).get_pipe("ner").temperature != 1.0


def test_a_killed_training_with_groups_ends_with_the_same_bytes(
    tmp_path, monkeypatch, corpus, encoder
):
    config = make_config(corpus, max_steps=6, eval_frequency=3)
    config["components"]["ner"]["model"] = kinds(encoder)["tuned"]
    config["training"]["optimizer"] = {
        "@optimizers": "spacy-psa.AdamW.v1",
        "learn_rate": 0.001,
        "rates": {"pretrained": 1.0, "*": 10.0},
        "layer_decay": 0.9,
    }
    with killed_at(monkeypatch, 3):
        run(tmp_path / "killed", config)
    run(tmp_path / "killed", config, resume=True)
    run(tmp_path / "whole", config)
    assert digests(tmp_path / "killed") == digests(tmp_path / "whole")


def test_the_gradient_of_parts_of_a_batch_is_that_of_the_batch(models):
    nlp = spacy.load(models / "tuned")
    assert_parts_are_the_batch(nlp, make_examples(nlp), 3)


def test_one_config_trains_four_components_over_one_encoder(encoder, tmp_path):
    """Some docs lack some of the layers."""
    nlp = spacy.blank("en")
    docs = [eg.reference for eg in make_examples(nlp)]
    trees = [eg.reference for eg in tree_examples(nlp)]
    for doc in trees:
        for token in doc:
            token.tag_ = "X" if token.is_punct else "Y"
        doc.spans["chunks"] = [Span(doc, 0, 1, "NP")]
    DocBin(docs=[*docs, *trees]).to_disk(tmp_path / "all.spacy")
    small = {
        "paths.train": tmp_path / "all.spacy",
        "paths.dev": tmp_path / "all.spacy",
        "paths.encoder": encoder,
        "shared.width": 16 + 4 + 8,
        "components.tok2vec.model.*.characters.hidden": 4,
        "components.parser.model.tok2vec.encode.width": 32,
        "components.parser.model.tok2vec.encode.heads": 2,
        "components.parser.model.tok2vec.encode.head_width": 8,
        "components.parser.model.tok2vec.encode.feedforward": 16,
        "training.max_steps": 20,
        "training.eval_frequency": 10,
        "training.batcher.size": 20,
        "training.optimizer.learn_rate.initial_rate": 1e-3,
        "training.optimizer.learn_rate.warmup_steps": 1,
        "training.optimizer.learn_rate.total_steps": 20,
    }
    options = [word for key, value in small.items() for word in (f"--{key}", value)]
    config = CONFIGS / "shared" / "pretrained.cfg"
    succeed(command("train")(config, "--output", tmp_path / "out", *options))
    nlp = spacy.load(tmp_path / "out" / "model-last")
    doc = nlp(trees[0].text)
    assert {t.tag_ for t in doc} == {"X", "Y"} and doc.has_annotation("ENT_IOB")
    assert doc.spans["constituents"] and "chunks" in doc.spans
